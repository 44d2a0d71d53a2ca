"""Reads a text file, or stdin."""

from __future__ import annotations

import sys
from pathlib import Path

from celery_pgbeat.errors import InvalidSource

LARGEST = 64 * 1024 * 1024  # bytes; a mistaken path must not fill the memory


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
    if source == "-":
        return sys.stdin.read()
    try:
        path = Path(source)
        if path.stat().st_size > LARGEST:
            raise InvalidSource(f"{source!r} is larger than {LARGEST // 1024**2} MB, not {what}")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidSource(f"{source!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidSource(f"{source!r} is not text, so not {what}") from None
