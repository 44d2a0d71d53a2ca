"""Makes texts from rows safe to print: they must not send commands to a terminal or forge a line of a log.

Characters that are not printable (control characters, marks that change the direction of writing, characters without
width) are escaped as in Python's repr, in JSON as in JSON. All other characters stay, of every alphabet.
"""

from __future__ import annotations

import json
from typing import Any


def one_line(text: str, longest: int | None = None) -> str:
    r"""Return a text on one line.

    Args:
        text: any text.
        longest: the number of characters after which it is cut; None for no limit.

    Example:
        >>> one_line("nightly\n[ERROR] forged \x1b[31m")
        'nightly\\n[ERROR] forged \\x1b[31m'
    """
    shown = text if text.isprintable() else "".join(_escaped(letter) for letter in text)
    return shown if longest is None or len(shown) <= longest else f"{shown[: longest - 1]}…"


def in_short(value: Any) -> str:
    """Return a value for an error message: at most 80 characters of its repr.

    Example:
        >>> in_short("x" * 1000)[-6:]
        'xxx...'
    """
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"  # Python refuses to print such a number
    except RecursionError:
        return "something nested too deeply to be shown"
    return text if len(text) <= 80 else f"{text[:77]}..."


def type_of(value: Any) -> str:
    """Return the type of a value for an error message, with its article.

    Example:
        >>> type_of(5), type_of([]), type_of(None)
        ('an int', 'a list', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__qualname__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def json_lines(value: Any, **options: Any) -> str:
    r"""Return JSON that reads back to the same value, with line breaks only where `indent` puts them.

    Args:
        value: anything that `json.dumps` takes.
        **options: those of `json.dumps`.

    Example:
        >>> print(json_lines("ü\u202e\x9b"))
        "ü\u202e\u009b"
    """
    text = json.dumps(value, ensure_ascii=False, **options)
    lines = text.split("\n")  # within a text a line break is escaped already
    if all(line.isprintable() for line in lines):
        return text
    return "\n".join("".join(_in_json(letter) for letter in line) for line in lines)


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else repr(letter)[1:-1]


def _in_json(letter: str) -> str:
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
