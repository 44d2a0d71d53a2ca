"""Texts of every alphabet where the terminal or the locale lacks their letters: no command ends with a traceback."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys

import click

ESCAPE = "celery_pgbeat.escape"


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(ESCAPE, _escaped)


def escape_what_stdout_lacks() -> None:
    r"""Have stdout and stderr write `\u20ac` for a letter that their encoding lacks: JSON stays JSON."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ESCAPE)


def as_utf8(argument: str) -> str:
    """Return an argument; one that the locale could not decode (as in LC_ALL=POSIX) is read as UTF-8.

    Raises:
        click.UsageError: it is no UTF-8 either.
    """
    try:
        argument.encode()
        return argument
    except UnicodeEncodeError:
        pass
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        raise click.UsageError(f"{argument!a} is not UTF-8: set LC_ALL to the locale of your terminal") from None
