"""Instants up to an end, which belongs to them."""

from __future__ import annotations

from datetime import datetime

from .instants import MICROSECOND
from .protocols import Times


class Bounded:
    """The instants of `times` that are not later than `last`."""

    __slots__ = ("_last", "times")

    def __init__(self, times: Times, last: datetime) -> None:
        self.times = times
        self._last = last

    def following(self, after: datetime) -> datetime | None:
        """Return the first instant strictly later than `after`, or None."""
        found = self.times.following(after) if after < self._last else None
        return found if found is not None and found <= self._last else None

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last instant strictly earlier than `before`, or None."""
        return self.times.preceding(min(before, self._last + MICROSECOND))

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]."""
        return self.times.count(after, min(until, self._last)) if after < self._last else 0
