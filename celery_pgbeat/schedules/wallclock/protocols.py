"""The two shapes that everything in this room has: sets of instants, and sets of readings of a wall clock.

`Times` is what a `Schedule` asks. `Readings` knows nothing of zones; `wall.py` turns one into the other.
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
    """A set of wall clock readings (datetimes that wear UTC as a label)."""

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""


@runtime_checkable
class SecondReadings(Readings, Protocol):
    """Readings at whole seconds, which can be had as a set of numbers: those of recurrence rules."""

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the readings within `length` seconds from `first`, as a set of bits; bit 0 stands for `first`."""
