"""Ctrl-C, SIGTERM and a closed terminal end the demo the same way: by an exception, so that all is tidied up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_end_the_demo() -> Iterator[None]:
    """Turn a signal into SystemExit, with the status that a shell expects of a program ended by it."""
    before = {number: signal.signal(number, _end) for number in SIGNALS}
    try:
        yield
    except SystemExit:
        click.echo("Ended before it was done; nothing that the demo started is left.", err=True)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
