"""Readings or instants between two ends, and the search for the one of a certain number."""

from __future__ import annotations

from datetime import datetime, timedelta

from .instants import MICROSECOND
from .protocols import Readings, SecondReadings, Times

SECOND = timedelta(seconds=1)
SHORT = timedelta(minutes=1)  # `nth` halves down to stretches of this length, and then goes on one by one


class Bounded:
    """The readings (or instants) that are not earlier than `first` and not later than `last`."""

    __slots__ = ("_before_first", "_first", "_last", "times")

    def __init__(self, times: Times | Readings, first: datetime, last: datetime) -> None:
        self.times = times
        self._before_first = first - MICROSECOND
        self._first = first
        self._last = last

    def following(self, after: datetime) -> datetime | None:
        """Return the first one strictly later than `after`, or None."""
        found = self.times.following(max(after, self._before_first)) if after < self._last else None
        return found if found is not None and found <= self._last else None

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last one strictly earlier than `before`, or None."""
        found = self.times.preceding(min(before, self._last + MICROSECOND)) if before > self._first else None
        return found if found is not None and found >= self._first else None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many lie in (after, until]."""
        low, high = max(after, self._before_first), min(until, self._last)
        return self.times.count(low, high) if low < high else 0

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the readings within `length` seconds from `first`, as a set of bits; bit 0 stands for `first`."""
        begin = max((self._first - first) // SECOND, 0)
        end = min((self._last - first) // SECOND + 1, length)
        if begin >= end:
            return 0
        assert isinstance(self.times, SecondReadings)
        return self.times.seconds_from(first, end) >> begin << begin


def nth(readings: Readings, first: datetime, number: int, last: datetime) -> datetime | None:
    """Return the reading of that number, counted from 1 at `first`; None if it is later than `last`.

    Works by counting ever longer stretches, then by halving the one that is too long.
    """
    low, missing, stretch = first - MICROSECOND, number, timedelta(days=1)
    while low < last:
        high = low + min(stretch, last - low)
        inside = readings.count(low, high)
        if inside >= missing:
            break
        low, missing, stretch = high, missing - inside, min(stretch * 2, timedelta(days=3_653))
    else:
        return None
    while high - low > SHORT:
        middle = low + (high - low) / 2
        inside = readings.count(low, middle)
        low, high, missing = (low, middle, missing) if inside >= missing else (middle, high, missing - inside)
    found: datetime | None = low
    for _ in range(missing):
        assert found is not None
        found = readings.following(found)
    return found
