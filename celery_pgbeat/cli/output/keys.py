"""Reads single keys from the terminal, without Enter."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

QUIT = (b"q", b"Q")


@contextmanager
def quit_key() -> Iterator[Callable[[float], bool]]:
    """Yield a function that waits for a number of seconds and returns whether `q` was pressed. Ctrl-C still works.

    Without a terminal at stdin it only waits.
    """
    if not sys.stdin.isatty():
        yield _sleep
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSANOW)  # keeps what was typed before
    try:
        yield lambda seconds: _pressed(terminal, seconds)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _pressed(terminal: int, seconds: float) -> bool:
    """Wait; return True as soon as the key is pressed, or if the terminal has gone."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        readable, _, _ = select.select([terminal], [], [], left)
        if readable and os.read(terminal, 1) in (*QUIT, b""):
            return True
    return False
