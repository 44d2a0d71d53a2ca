"""Instants at equal distances in real time, without wall clocks and DST."""

from __future__ import annotations

from datetime import datetime, timedelta

from .bitset import tiled
from .instants import LATEST, MICROSECOND, horizon_after, horizon_before

SECOND = timedelta(seconds=1)


class Grid:
    """The instants `anchor + k * step` for k from `first` to `last`, both included; a `last` of None is no end."""

    __slots__ = ("_anchor", "_first", "_last", "_step")

    def __init__(self, anchor: datetime, step: timedelta, first: int = 0, last: int | None = None) -> None:
        self._anchor = anchor
        self._step = step
        self._first = first
        reachable = (LATEST - anchor) // step
        self._last = reachable if last is None else min(last, reachable)

    def endless_from(self, anchor: datetime) -> Grid:
        """Return the endless grid of the same step that begins at another anchor."""
        return Grid(anchor, self._step)

    def following(self, after: datetime) -> datetime | None:
        """Return the first instant strictly later than `after`, or None."""
        k = max((after - self._anchor) // self._step + 1, self._first)
        if k > self._last:
            return None
        found = self._anchor + k * self._step
        return found if found <= horizon_after(after) else None

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last instant strictly earlier than `before`, or None."""
        k = min((before - self._anchor - MICROSECOND) // self._step, self._last)
        if k < self._first:
            return None
        found = self._anchor + k * self._step
        return found if found >= horizon_before(before) else None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]."""
        return max(0, self._index(until) - self._index(after))

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the instants within `length` seconds from `first`, as a set of bits; needs whole seconds."""
        earliest = max(-((self._anchor - first) // self._step), self._first)
        last = min((first + (length - 1) * SECOND - self._anchor) // self._step, self._last)
        if last < earliest:
            return 0
        step, offset = self._step // SECOND, (self._anchor + earliest * self._step - first) // SECOND
        return (tiled(1, step, (last - earliest) * step + 1) & ((1 << (last - earliest) * step + 1) - 1)) << offset

    def _index(self, instant: datetime) -> int:
        """Return the number of the last instant that is not later, or one less than the first."""
        return min(max((instant - self._anchor) // self._step, self._first - 1), self._last)


class Instants:
    """A few instants that are known one by one, in ascending order."""

    __slots__ = ("_instants",)

    def __init__(self, *instants: datetime) -> None:
        self._instants = instants

    def following(self, after: datetime) -> datetime | None:
        """Return the first instant strictly later than `after`, or None."""
        limit = horizon_after(after)
        return next((instant for instant in self._instants if after < instant <= limit), None)

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last instant strictly earlier than `before`, or None."""
        limit = horizon_before(before)
        return next((instant for instant in reversed(self._instants) if limit <= instant < before), None)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until]."""
        return sum(after < instant <= until for instant in self._instants)
