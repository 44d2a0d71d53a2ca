"""Waiting for something that other processes bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.harness.connections import kept

T = TypeVar("T")


def eventually(predicate: Callable[[], T], timeout: float, message: str, *, every: float = 0.05) -> T:
    """Call the predicate until it gives something true, and return that.

    Args:
        timeout: seconds; the predicate is called at least once, and once more at the very end.
        message: what was waited for, shown when it does not come.
        every: seconds between two calls.
    """
    until = time.monotonic() + timeout
    with kept():
        while True:
            last_try = time.monotonic() >= until
            found = predicate()
            if found:
                return found
            if last_try:
                raise AssertionError(f"{message}: not within {timeout} s (last seen: {found!r})")
            time.sleep(every)
