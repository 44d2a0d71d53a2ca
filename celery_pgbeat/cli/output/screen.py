"""The screen of the demo and of `top`: on a terminal a table that is redrawn in place, elsewhere short lines."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Protocol

import click

from celery_pgbeat.cli.output.terminal import cut

LINE_EVERY = 5.0  # seconds between two lines where there is no terminal
UP_AND_CLEAR = "\x1b[{}F\x1b[J"  # go up this number of lines, and clear everything below


class View(Protocol):
    """Something that the screen can show."""

    def table(self, width: int) -> Sequence[tuple[str, str | None]]:
        """Return it as lines, each with its colour, for a terminal of this width."""

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
        self._print(self._styled(text, "red" if red else None))

    def draw(self, view: View, *, last: bool = False) -> None:
        """Draw the table, or print the line; without a terminal only if it is time for one, or the last."""
        if self._is_terminal:
            size = shutil.get_terminal_size()
            width = size.columns - 1
            table = view.table(width)[: size.lines - 1]
            self._print("\n".join(self._styled(cut(text, width), colour) for text, colour in table))
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
        # Without colours click would take the cursor's moves out of the text as well.
        click.echo(f"{above}{text}", err=self._to_stderr, color=True if self._is_terminal else None)

    def _styled(self, text: str, colour: str | None) -> str:
        ctx = click.get_current_context(silent=True)
        plain = colour is None or (ctx is not None and ctx.color is False)
        return text if plain else click.style(text, fg=colour)
