"""Patterns of names: `*` stands for any text, `?` for one character, as in a shell."""

from __future__ import annotations

import re

WILD = re.compile(r"\\.|[*?]", re.DOTALL)


def like(pattern: str) -> str:
    r"""Return a pattern as SQL's LIKE has it; one without `*` and `?` is taken as LIKE's already.

    A backslash takes the meaning of the character after it.

    Example:
        >>> like("report_*"), like(r"50%-\*-?"), like("mail-%")
        ('report\\_%', '50\\%-*-_', 'mail-%')
    """
    if not any(found.group() in "*?" for found in WILD.finditer(pattern)):
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
