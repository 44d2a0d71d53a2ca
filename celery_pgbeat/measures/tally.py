"""What one beat has counted since it started.

Three of its threads count, once for each batch, and a fourth one reads.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

# Upper bounds in seconds: on time is well under one, late in catch-up hours.
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)


class Lateness:
    """A histogram of how late jobs were sent."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0  # seconds

    def add(self, seconds: Iterable[float]) -> None:
        """Count some."""
        for late in seconds:
            self._counts[bisect_left(BOUNDS, late)] += 1
            self.total += late

    def buckets(self) -> list[tuple[str, int]]:
        """Return each upper bound, as Prometheus writes it, and the number of jobs that were not later than that."""
        buckets, sum_ = [], 0
        for bound, count in zip((*BOUNDS, None), self._counts, strict=True):
            sum_ += count
            buckets.append(("+Inf" if bound is None else str(bound), sum_))
        return buckets


class Tally:
    """The counts of one beat.

    Example:
        >>> tally = Tally()
        >>> tally.count(sent=3, lost=1)
        >>> tally.count(sent=2)
        >>> tally.counts()["sent"], tally.counts()["refused"]
        (5, 0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._lateness = Lateness()
        self._cycle_ended_at: float | None = None
        self.broker_up = True

    def count(self, **counts: int) -> None:
        """Add to what was sent, refused, recovered or lost."""
        with self._lock:
            self._counts.update(counts)

    def skip(self, skipped: Mapping[str, int]) -> None:
        """Add occurrences that were skipped, by the reason."""
        with self._lock:
            self._skipped.update(skipped)

    def late(self, seconds: Iterable[float]) -> None:
        """Add how late jobs were sent, in seconds after they were due."""
        with self._lock:
            self._lateness.add(seconds)

    def cycle_ended(self, *, broker_up: bool) -> None:
        """Note the end of a cycle."""
        self._cycle_ended_at, self.broker_up = time.monotonic(), broker_up

    def counts(self) -> Counter[str]:
        """Return all counts; one that was never added to is 0."""
        with self._lock:
            return Counter(self._counts)

    def skipped(self) -> Counter[str]:
        """Return the skipped occurrences, by the reason."""
        with self._lock:
            return Counter(self._skipped)

    def lateness(self) -> tuple[list[tuple[str, int]], float]:
        """Return the buckets of the lateness, and its sum in seconds."""
        with self._lock:
            return self._lateness.buckets(), self._lateness.total

    def since_cycle(self) -> float | None:
        """Return the seconds since the last cycle that succeeded; None before the first."""
        return None if self._cycle_ended_at is None else time.monotonic() - self._cycle_ended_at
