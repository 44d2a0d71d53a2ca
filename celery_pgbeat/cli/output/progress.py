"""Progress of long work: one line that is rewritten, only on a terminal and only after a second."""

from __future__ import annotations

import sys
import time

import click

PATIENCE = 1.0  # seconds before the first line
EVERY = 0.2  # seconds between two updates
CLEARED = "\r\x1b[K"


class Progress:
    """Prints to stderr how much is done, such as `12000 lines read`.

    Args:
        what: what is counted, such as `lines read`.
        silent: print nothing, because the command's own output shows the progress.
    """

    def __init__(self, what: str, *, silent: bool = False) -> None:
        self._what = what
        self._is_shown = sys.stderr.isatty() and not silent
        self._next_at = time.monotonic() + PATIENCE
        self._is_printed = False

    def __call__(self, done: int) -> None:
        """Print the number that is done."""
        if self._is_shown and time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + EVERY
            self._is_printed = True
            click.echo(f"{CLEARED}{done} {self._what}", err=True, nl=False)

    def clear(self) -> None:
        """Clear the line for the next output."""
        if self._is_printed:
            self._is_printed = False
            click.echo(CLEARED, err=True, nl=False)
