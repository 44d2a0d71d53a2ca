"""Readings (or instants) with a few more, and without a few: what RDATE and EXDATE do."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime, timedelta

from .instants import MICROSECOND, horizon_after, horizon_before
from .protocols import Readings, SecondReadings, Times

SECOND = timedelta(seconds=1)


class WithExceptions:
    """The readings (or instants) together with those in `added`, without those in `removed`."""

    __slots__ = ("_added", "_readings", "_removed")

    def __init__(self, readings: Readings | Times | None, added: set[datetime], removed: set[datetime]) -> None:
        self._readings = readings
        # Only those that are not there already, and only those that are, so that `count` may add and subtract.
        self._added = sorted(extra for extra in added - removed if not self._has(extra))
        self._removed = sorted(gone for gone in removed if self._has(gone))

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""
        index = bisect_right(self._added, after)
        extra = self._added[index] if index < len(self._added) and self._added[index] <= horizon_after(after) else None
        found = self._next_kept(after)
        return min((reading for reading in (extra, found) if reading is not None), default=None)

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""
        index = bisect_left(self._added, before)
        extra = self._added[index - 1] if index and self._added[index - 1] >= horizon_before(before) else None
        found = self._previous_kept(before)
        return max((reading for reading in (extra, found) if reading is not None), default=None)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""
        own = 0 if self._readings is None else self._readings.count(after, until)
        return own + _between(self._added, after, until) - _between(self._removed, after, until)

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the readings within `length` seconds from `first`, as a set of bits; bit 0 stands for `first`."""
        found = self._readings.seconds_from(first, length) if isinstance(self._readings, SecondReadings) else 0
        end = first + length * SECOND
        for extra in self._added[bisect_left(self._added, first) : bisect_left(self._added, end)]:
            found |= 1 << (extra - first) // SECOND
        for gone in self._removed[bisect_left(self._removed, first) : bisect_left(self._removed, end)]:
            found &= ~(1 << (gone - first) // SECOND)
        return found

    def _has(self, reading: datetime) -> bool:
        """Return whether it is one of the readings themselves; by `count`, which need not search for a next one."""
        return self._readings is not None and self._readings.count(reading - MICROSECOND, reading) > 0

    def _next_kept(self, after: datetime) -> datetime | None:
        found = None if self._readings is None else self._readings.following(after)
        while found is not None and found in self._removed:
            assert self._readings is not None
            found = self._readings.following(found)
        return found

    def _previous_kept(self, before: datetime) -> datetime | None:
        found = None if self._readings is None else self._readings.preceding(before)
        while found is not None and found in self._removed:
            assert self._readings is not None
            found = self._readings.preceding(found)
        return found


def _between(readings: list[datetime], after: datetime, until: datetime) -> int:
    return bisect_right(readings, until) - bisect_right(readings, after)
