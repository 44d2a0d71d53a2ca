"""Readings at certain times of the day, on certain days."""

from __future__ import annotations

from datetime import datetime

from .days import Days, count_days, following_day, preceding_day, seconds_of_days
from .times_of_day import Clock, FineClock

SEARCH = 101  # years; one more than the horizon of 100, for zones that are ahead
FIRST, LAST = 2, 9998  # years; as EARLIEST and LATEST have it


class Pattern:
    """The readings at `clock`'s times on each of `days`."""

    __slots__ = ("clock", "days")

    def __init__(self, clock: Clock | FineClock, days: Days) -> None:
        self.clock = clock
        self.days = days

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""
        year, month, day = after.year, after.month, after.day
        if self.days.mask(year, month) >> day & 1:
            found = self.clock.following(after)
            if found is not None:
                return found
        ahead = following_day(self.days, year, month, day, min(year + SEARCH, LAST))
        return None if ahead is None else self.clock.first_on(*ahead)

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""
        year, month, day = before.year, before.month, before.day
        if self.days.mask(year, month) >> day & 1:
            found = self.clock.preceding(before)
            if found is not None:
                return found
        behind = preceding_day(self.days, year, month, day, max(year - SEARCH, FIRST))
        return None if behind is None else self.clock.last_on(*behind)

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""
        begun = self.clock.up_to(after) if self.days.mask(after.year, after.month) >> after.day & 1 else 0
        ended = self.clock.up_to(until) if self.days.mask(until.year, until.month) >> until.day & 1 else 0
        if after.date() == until.date():
            return ended - begun
        today = self.clock.per_day if self.days.mask(after.year, after.month) >> after.day & 1 else 0
        between = count_days(self.days, after.date(), until.date())
        return today - begun + between * self.clock.per_day + ended

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the readings within `length` seconds from `first`, as a set of bits; bit 0 stands for `first`."""
        assert isinstance(self.clock, Clock)  # calendar events, which have a FineClock, never shift readings of a gap
        seconds = self.clock.seconds_of_day()
        return seconds_of_days(self.days, lambda _: seconds, first, length)
