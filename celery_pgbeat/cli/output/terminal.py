"""Texts on a terminal: how wide it is, and how a text is cut, or broken into lines, so that it fits."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from typing import IO, Any

GAP = "  "  # between two columns
EMPTY = "-"  # in place of a value that is missing
NARROWEST = 40  # characters; a terminal that says it has fewer is not believed


def terminal_width(stream: IO[Any] | None = None) -> int | None:
    """Return how wide the terminal is (COLUMNS, if that is set); None if the stream, or stdout, is not a terminal."""
    if not (stream or sys.stdout).isatty():
        return None
    return max(shutil.get_terminal_size().columns, NARROWEST)


def wrapped(text: str, width: int, most: int | None = None) -> list[str]:
    """Return a text as lines of at most this width."""
    lines = textwrap.wrap(text, width, max_lines=most, placeholder=" …", break_on_hyphens=False) or [""]
    if all(columns_of(line) <= width for line in lines):
        return lines
    return [cut(line, width) for line in textwrap.wrap(text, width // 2, max_lines=most, placeholder=" …")]


def cut(text: str, width: int) -> str:
    """Return a text that takes at most this number of columns of a terminal."""
    if columns_of(text) <= width:
        return text
    kept, used = "", 1
    for letter in text:
        used += columns_of(letter)
        if used > width:
            break
        kept += letter
    return f"{kept}…"


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: letters of East Asia take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
