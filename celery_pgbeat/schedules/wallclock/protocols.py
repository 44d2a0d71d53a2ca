"""The two types that all kinds share: sets of instants, and sets of readings of a wall clock.

A `Schedule` has `Times`. `Readings` do not depend on a zone; `wall_times.py` makes `Times` of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol, runtime_checkable


class Times(Protocol):
    """A set of instants. Arguments lie within EARLIEST..LATEST; nothing further away than HORIZON is found."""

    def following(self, after: datetime) -> datetime | None:
        """Return the first instant strictly later than `after`, or None."""

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last instant strictly earlier than `before`, or None."""

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many instants lie in (after, until], without visiting each."""


class Readings(Protocol):
    """A set of wall clock readings (datetimes whose UTC means nothing)."""

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""


@runtime_checkable
class SecondReadings(Readings, Protocol):
    """Readings at whole seconds, those of recurrence rules, which can be returned as a set of numbers."""

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the readings within `length` seconds from `first`, as a set of bits; bit 0 stands for `first`."""
