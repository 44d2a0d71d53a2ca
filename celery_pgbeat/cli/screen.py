"""The screen of the demo and of `top`: on a terminal a table that is redrawn in place, elsewhere short lines."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Protocol

import click

LINE_EVERY = 5.0  # seconds between two lines where there is no terminal
UP_AND_CLEAR = "\x1b[{}F\x1b[J"  # go up this number of lines, and clear everything below


class View(Protocol):
    """Something that the screen can show."""

    def table(self) -> Sequence[tuple[str, str | None]]:
        """Return it as lines, each with its colour."""

    def line(self) -> str:
        """Return it as one line."""


class Screen:
    """Prints messages, which stay and scroll, and below them the table.

    Args:
        to_stderr: print to stderr, so that stdout has only the JSON.
    """

    def __init__(self, *, to_stderr: bool = False) -> None:
        self._to_stderr = to_stderr
        stream = sys.stderr if to_stderr else sys.stdout
        self._is_terminal = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._drawn = 0  # lines of the table on the screen
        self._next_line_at = 0.0

    def say(self, text: str, *, red: bool = False) -> None:
        """Print a message that stays."""
        self._print(click.style(text, fg="red") if red else text)

    def draw(self, view: View, *, last: bool = False) -> None:
        """Draw the table, or print the line; without a terminal only if it is time for one, or the last."""
        if self._is_terminal:
            size = shutil.get_terminal_size()
            table = view.table()[: size.lines - 1]
            self._print("\n".join(click.style(text[: size.columns - 1], fg=colour) for text, colour in table))
            self._drawn = len(table)
        elif last or time.monotonic() >= self._next_line_at:
            self._next_line_at = time.monotonic() + LINE_EVERY
            self._print(view.line())

    def leave(self) -> None:
        """Keep the table on the screen; later messages are printed below it."""
        self._drawn = 0

    def _print(self, text: str) -> None:
        """Print in place of the table, with one write, so that nothing flickers."""
        above = UP_AND_CLEAR.format(self._drawn) if self._drawn else ""
        self._drawn = 0
        click.echo(f"{above}{text}", err=self._to_stderr)
