"""Reads a text file, or stdin: no more of it than its largest, whatever the file system says of its size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TextIO

from celery_pgbeat.errors import InvalidSource

LARGEST = 64 * 1024 * 1024  # bytes; a mistaken path, such as a device, must not fill the memory
LONGEST_LINE = 4 * 1024 * 1024  # characters; the longest definition has a quarter


def text_of(source: str | None, what: str) -> str:
    """Return the text of a file; `-` is stdin.

    Args:
        source: its path.
        what: what the file has to be, for the error.

    Raises:
        InvalidSource: no file was named, or it is not readable text.
    """
    if source is None:
        raise InvalidSource(f"name the source: {what}, or - for stdin")
    try:
        if source == "-":
            found = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(source).open("rb") as file:
                found = file.read(LARGEST + 1)
        if len(found) <= LARGEST:
            return found.decode("utf-8-sig")
    except OSError as error:
        raise InvalidSource(f"{source!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidSource(f"{source!r} is not text, so not {what}") from None
    raise InvalidSource(f"{source!r} is larger than {LARGEST // 1024**2} MB, not {what}")


def lines_of(file: TextIO, name: str) -> Iterator[str]:
    """Iterate over the lines of a file.

    Raises:
        InvalidSource: it cannot be read, or a line is longer than any that is meant.
    """
    for number in count(1):
        try:
            line = file.readline(LONGEST_LINE)
        except OSError as error:
            raise InvalidSource(f"{name!r} cannot be read: {error.strerror}") from None
        if len(line) == LONGEST_LINE:
            raise InvalidSource(f"{name!r}, line {number} is longer than {LONGEST_LINE // 1024**2} million characters")
        if not line:
            return
        yield line
