"""Patterns of names: `*` stands for any text, `?` for one character, as in a shell."""

from __future__ import annotations

import re

WILD = re.compile(r"\\.|[*?]", re.DOTALL)


def is_pattern(word: str) -> bool:
    r"""Return whether a word has a `*` or `?` that no backslash precedes.

    Example:
        >>> is_pattern("report-*"), is_pattern("report"), is_pattern(r"what\?")
        (True, False, False)
    """
    return any(found.group() in "*?" for found in WILD.finditer(word))


def plain(word: str) -> str:
    r"""Return a word that is no pattern as a name: without the backslashes before `*`, `?` and a backslash.

    Example:
        >>> plain(r"what\?")
        'what?'
    """
    return re.sub(r"\\([*?\\])", r"\1", word)


def like(pattern: str) -> str:
    r"""Return a pattern as SQL's LIKE has it; one without `*` and `?` is taken as LIKE's already.

    A backslash takes the meaning of the character after it.

    Example:
        >>> like("report_*"), like(r"50%-\*-?"), like("mail-%")
        ('report\\_%', '50\\%-*-_', 'mail-%')
    """
    if not is_pattern(pattern):
        return pattern
    parts, at = [], 0
    for found in WILD.finditer(pattern):
        parts += [_escaped(pattern[at : found.start()]), _part(found.group())]
        at = found.end()
    return "".join([*parts, _escaped(pattern[at:])])


def _part(found: str) -> str:
    return {"*": "%", "?": "_"}.get(found) or _escaped(found[1] if found[1] in "*?\\" else found)


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)
