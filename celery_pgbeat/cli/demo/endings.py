"""Ctrl-C, SIGTERM and a closed terminal raise an exception in the demo, so that it cleans up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_end_the_demo() -> Iterator[None]:
    """Turn a signal into SystemExit, with the exit code that shells use for it."""
    before = {number: signal.signal(number, _end) for number in SIGNALS}
    try:
        yield
    except SystemExit:
        click.echo("Ended early; everything that the demo started has been stopped.", err=True)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
