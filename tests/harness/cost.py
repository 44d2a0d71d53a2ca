"""What something costs, on a machine that is shared and changes its speed from one minute to the next."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_for(action: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def loops_for(action: Callable[[], object], tries: int = 3) -> float:
    """Return what an action costs at its cheapest, in loops of 100,000 small steps that run beside it.

    Such a loop takes some 5 ms, and on a slow machine 15.
    """
    found = []
    for _ in range(tries):
        before = seconds_for(_loop)
        cost = seconds_for(action)
        found.append(cost / max(before, seconds_for(_loop)))
    return min(found)


def _loop() -> None:
    total = 0
    for number in range(100_000):
        total += number % 7
