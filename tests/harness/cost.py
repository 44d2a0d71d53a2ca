"""What something costs, on a machine that is shared and changes its speed from one minute to the next."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

ORDINARY = 0.006  # seconds that a loop takes


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


def slowness() -> float:
    """Return how many times as long as on an ordinary machine things take here and now; 1 at least.

    Bounds in seconds are multiplied by it. It is measured by the clock, so that what others do beside us counts too.
    """
    found = []
    for _ in range(5):
        begun = time.perf_counter()
        _loop()
        found.append(time.perf_counter() - begun)
    return max(1.0, statistics.median(found) / ORDINARY)


def _loop() -> None:
    total = 0
    for number in range(100_000):
        total += number % 7
