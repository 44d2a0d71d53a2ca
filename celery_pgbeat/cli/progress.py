"""How far long work has come: a line that is written anew, on a terminal and only once the work has taken a while."""

from __future__ import annotations

import sys
import time

import click

PATIENCE = 1.0  # seconds without a word
EVERY = 0.2  # seconds between two of them
CLEARED = "\r\x1b[K"


class Progress:
    """Says on stderr how much is done, such as `12000 lines read`.

    Args:
        what: is done.
        silent: where what is printed tells it itself.
    """

    def __init__(self, what: str, *, silent: bool = False) -> None:
        self._what = what
        self._speaks = sys.stderr.isatty() and not silent
        self._next_at = time.monotonic() + PATIENCE
        self._stands = False

    def __call__(self, done: int) -> None:
        """Say that so much is done."""
        if self._speaks and time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + EVERY
            self._stands = True
            click.echo(f"{CLEARED}{done} {self._what}", err=True, nl=False)

    def clear(self) -> None:
        """Leave the line to whatever is printed next."""
        if self._stands:
            self._stands = False
            click.echo(CLEARED, err=True, nl=False)
