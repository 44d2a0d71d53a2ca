"""Hourly and finer rules, whose times differ from day to day when the interval does not divide a day.

A day is a set of 86,400 seconds. Rules with BYSETPOS in a day and finer periods are computed here too.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache
from sys import byteorder

from ..wallclock.bitset import highest, lowest, members_of, tiled
from ..wallclock.days import Days, count_days, seconds_of_days
from ..wallclock.pattern import FIRST, LAST, SEARCH
from ..wallclock.times_of_day import at_second, second_of_day

DAY = 86_400  # seconds
ONE_DAY = timedelta(days=1)
KEPT_SETS = 64  # of 11 kB each
A_LONG_SEARCH = 366  # days; longer stretches in which nothing was found are remembered


@lru_cache(maxsize=64)  # of 173 kB at most; more than one row's windows have, or each question would make one anew
def counts_by_first(wanted: int, unit: int, interval: int) -> array[int]:
    """Return how many of the wanted seconds lie in a day's active periods, by how many periods pass before the first.

    An index past the end stands for a day without an active period. For intervals that do not divide a day.
    """
    seconds = f"{wanted:0{DAY}b}"[::-1]
    by_period = array("H", (seconds.count("1", at, at + unit) for at in range(0, DAY, unit)))
    if interval >= len(by_period):
        return by_period
    by_period.extend([0] * (-len(by_period) % interval))
    # The same place of each round, added up as digits of one long number. None overflows: the interval is 7 or more.
    rounds = by_period.tobytes()
    size = interval * by_period.itemsize
    total = sum(int.from_bytes(rounds[at : at + size], byteorder) for at in range(0, len(rounds), size))
    return array("H", total.to_bytes(size, byteorder))


class ActivePeriods:
    """On each of `days` the seconds in `wanted` that are in an active period.

    Periods of `unit` seconds follow each other; one in `interval` is active, beginning with the period of `start`.
    """

    __slots__ = ("_days", "_hole", "_interval", "_sets", "_start", "_uniform", "_unit", "_wanted")

    def __init__(self, days: Days, wanted: int, unit: int, interval: int, start: datetime) -> None:
        self._days = days
        self._wanted = wanted
        self._unit = unit
        self._interval = interval
        self._start = (start.toordinal() * DAY + start.hour * 3600 + start.minute * 60 + start.second) // unit
        self._uniform = DAY % (interval * unit) == 0  # each day has the same seconds
        self._sets: dict[int, int] = {}
        # The result of the last long search: no day strictly between these two has a reading.
        self._hole = (date.max, date.max)

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""
        if self._days.mask(after.year, after.month) >> after.day & 1:
            second = second_of_day(after) + 1
            rest = self._on(after.toordinal()) >> second
            if rest:
                return at_second(after, second + lowest(rest))
        if not self._wanted or (self._uniform and not self._on(0)):
            return None
        limit = min(after.year + SEARCH, LAST)
        day = self._day_after(after.date(), limit)
        self._remember(after.date(), day or date(limit + 1, 1, 1))
        return None if day is None else at_second(day, lowest(self._on(day.toordinal())))

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""
        if self._days.mask(before.year, before.month) >> before.day & 1:
            ended = second_of_day(before) + (before.microsecond > 0)
            rest = self._on(before.toordinal()) & ((1 << ended) - 1)
            if rest:
                return at_second(before, highest(rest))
        if not self._wanted or (self._uniform and not self._on(0)):
            return None
        limit = max(before.year - SEARCH, FIRST)
        day = self._day_before(before.date(), limit)
        self._remember(day or date(limit - 1, 12, 31), before.date())
        return None if day is None else at_second(day, highest(self._on(day.toordinal())))

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""
        total = self._up_to(until) - self._up_to(after)
        if after.date() == until.date():
            return total
        if self._days.mask(after.year, after.month) >> after.day & 1:
            total += self._on(after.toordinal()).bit_count()
        if self._uniform:
            return total + count_days(self._days, after.date(), until.date()) * self._on(0).bit_count()
        return total + self._count_between(after.date(), until.date())

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the readings within `length` seconds from `first`, as a set of bits; bit 0 stands for `first`."""
        return seconds_of_days(self._days, lambda day: self._on(day.toordinal()), first, length)

    def _count_between(self, after: date, before: date) -> int:
        """Return how many readings lie on the days strictly between two."""
        counts = counts_by_first(self._wanted, self._unit, self._interval)
        periods, interval, size = DAY // self._unit, self._interval, len(counts)
        total = 0
        for year, month, mask in self._months(after + ONE_DAY, before - ONE_DAY):
            first = self._start - (date(year, month, 1).toordinal() - 1) * periods
            for day in members_of(mask):
                place = (first - day * periods) % interval
                if place < size:
                    total += counts[place]
        return total

    def _with_readings(self, first: date, last: date, *, backwards: bool = False) -> date | None:
        """Return the first day (or the last one) from `first` to `last` that has a reading."""
        if self._uniform:
            found = next(self._months(first, last, backwards=backwards), None)
            return found and date(*found[:2], highest(found[2]) if backwards else lowest(found[2]))
        counts = counts_by_first(self._wanted, self._unit, self._interval)
        periods, interval, size = DAY // self._unit, self._interval, len(counts)
        for year, month, mask in self._months(first, last, backwards=backwards):
            begin = self._start - (date(year, month, 1).toordinal() - 1) * periods
            for day in reversed(members_of(mask)) if backwards else members_of(mask):
                place = (begin - day * periods) % interval
                if place < size and counts[place]:
                    return date(year, month, day)
        return None

    def _months(self, first: date, last: date, *, backwards: bool = False) -> Iterator[tuple[int, int, int]]:
        """Iterate over the months from one day to another, each with those of its days that lie between them."""
        begin, end = first.year * 12 + first.month - 1, last.year * 12 + last.month - 1
        for number in range(end, begin - 1, -1) if backwards else range(begin, end + 1):
            year, month = number // 12, number % 12 + 1
            mask = self._days.mask(year, month)
            if number == begin:
                mask = mask >> first.day << first.day
            if number == end:
                mask &= (2 << last.day) - 1
            if mask:
                yield year, month, mask

    def _day_after(self, day: date, last_year: int) -> date | None:
        """Return the first later day that has a reading."""
        opens, closes = self._hole
        last = date(last_year, 12, 31)
        if day < opens:
            found = self._with_readings(day + ONE_DAY, min(opens, last))
            if found is not None or opens >= last:
                return found
            return self._with_readings(closes, last)
        return self._with_readings(max(day + ONE_DAY, closes), last)

    def _day_before(self, day: date, first_year: int) -> date | None:
        """Return the last earlier day that has a reading."""
        opens, closes = self._hole
        first = date(first_year, 1, 1)
        if day > closes:
            found = self._with_readings(max(closes, first), day - ONE_DAY, backwards=True)
            if found is not None or closes <= first:
                return found
            return self._with_readings(first, opens, backwards=True)
        return self._with_readings(first, min(day - ONE_DAY, opens), backwards=True)

    def _remember(self, opens: date, closes: date) -> None:
        """Keep the stretch in which a search found nothing: the next ones, such as those of windows, often meet it."""
        if (closes - opens).days > A_LONG_SEARCH:
            self._hole = (opens, closes)

    def _up_to(self, reading: datetime) -> int:
        """Return how many readings of that day are not later than `reading`."""
        if not self._days.mask(reading.year, reading.month) >> reading.day & 1:
            return 0
        return (self._on(reading.toordinal()) & ((2 << second_of_day(reading)) - 1)).bit_count()

    def _first_active(self, ordinal: int) -> int:
        """Return how many periods of that day pass before the first active one."""
        return (self._start - ordinal * DAY // self._unit) % self._interval

    def _on(self, ordinal: int) -> int:
        """Return the seconds of that day."""
        first = self._first_active(ordinal)
        offset = first * self._unit
        if offset >= DAY:
            return 0
        found = self._sets.get(first)
        if found is None:
            if len(self._sets) >= KEPT_SETS:
                self._sets.clear()
            active = tiled((1 << self._unit) - 1, self._unit * self._interval, DAY - offset)
            found = self._sets[first] = (active & self._wanted >> offset) << offset
        return found
