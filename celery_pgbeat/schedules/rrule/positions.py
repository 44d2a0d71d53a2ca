"""BYSETPOS in weeks, months and years."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

from ..wallclock.bitset import members, members_of
from ..wallclock.days import DECEMBER, JANUARY, Days, count_days, following_day, preceding_day
from ..wallclock.instants import MICROSECOND
from ..wallclock.pattern import FIRST, LAST, SEARCH
from ..wallclock.times_of_day import at_second, second_of_day

ONE_DAY = timedelta(days=1)
ONE_SECOND = timedelta(seconds=1)


class AtPositions:
    """Of the readings of each period (a week, a month, a year) those at certain positions.

    Args:
        days: the days of all periods.
        times: the times of the day, as a set of seconds.
        positions: 1 is the first of a period, -1 the last.
        period_of: a day -> the first day of its period.
        next_period: the first day of a period -> that of the next one.
    """

    __slots__ = ("_days", "_next_period", "_period_of", "_places", "_positions", "_times")

    def __init__(
        self,
        days: Days,
        times: int,
        positions: tuple[int, ...],
        period_of: Callable[[date], date],
        next_period: Callable[[date], date],
    ) -> None:
        self._days = days
        self._times = members(times)
        self._positions = positions
        self._period_of = period_of
        self._next_period = next_period
        self._places: dict[int, tuple[int, ...]] = {}

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""
        for period in self._periods_from(after.date(), min(after.year + SEARCH, LAST)):
            places = self._places_in(period)
            index = self._up_to(period, after) if places else 0
            if index < len(places):
                return self._at_place(period, places[index])
        return None

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""
        for period in self._periods_back_from(before.date(), max(before.year - SEARCH, FIRST)):
            places = self._places_in(period)
            index = self._up_to(period, before - MICROSECOND) if places else 0
            if index:
                return self._at_place(period, places[index - 1])
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""
        period, last = self._period_of(after.date()), self._period_of(until.date())
        total = self._up_to(last, until) - self._up_to(period, after)
        while period < last:
            total += len(self._places_in(period))
            period = self._next_period(period)
        return total

    def seconds_from(self, first: datetime, length: int) -> int:
        """Return the readings within `length` seconds from `first`, as a set of bits; bit 0 stands for `first`."""
        found, end = 0, first + timedelta(seconds=length)
        period = self._period_of(first.date())
        while period <= end.date():
            low, high = self._up_to(period, first - MICROSECOND), self._up_to(period, end - MICROSECOND)
            midnights: dict[int, int] = {}  # of the period's days, in seconds from `first`
            for place in self._places_in(period)[low:high]:
                number, time = divmod(place, len(self._times))
                if number not in midnights:
                    midnights[number] = (at_second(self._nth_day(period, number), 0) - first) // ONE_SECOND
                found |= 1 << midnights[number] + self._times[time]
            period = self._next_period(period)
        return found

    def _periods_from(self, day: date, last_year: int) -> Iterator[date]:
        """Iterate over the period that holds the day, and the later ones that have days at all."""
        ahead: date | None = day
        while ahead is not None:
            period = self._period_of(ahead)
            yield period
            last = self._next_period(period) - ONE_DAY
            found = following_day(self._days, last.year, last.month, last.day, last_year)
            ahead = found and date(*found)

    def _periods_back_from(self, day: date, first_year: int) -> Iterator[date]:
        """Iterate backwards over the period that holds the day, and the earlier ones that have days at all."""
        behind: date | None = day
        while behind is not None:
            period = self._period_of(behind)
            yield period
            found = preceding_day(self._days, period.year, period.month, period.day, first_year)
            behind = found and date(*found)

    def _places_in(self, period: date) -> tuple[int, ...]:
        """Return the numbers of the wanted times of the period, counted from 0 over all its days."""
        days = count_days(self._days, self._eve(period), self._next_period(period))
        found = self._places.get(days)
        if found is None:
            size = days * len(self._times)
            places = {position - 1 if position > 0 else size + position for position in self._positions}
            found = self._places[days] = tuple(sorted(place for place in places if 0 <= place < size))
        return found

    def _up_to(self, period: date, reading: datetime) -> int:
        """Return how many readings of the period are not later than `reading`, which may be before or after it."""
        day = reading.date()
        if day < period:
            return 0
        if day >= self._next_period(period):
            return len(self._places_in(period))
        passed = count_days(self._days, self._eve(period), day) * len(self._times)
        if self._days.mask(day.year, day.month) >> day.day & 1:
            passed += bisect_right(self._times, second_of_day(reading))
        return bisect_left(self._places_in(period), passed)

    def _at_place(self, period: date, place: int) -> datetime:
        """Return the reading at that place of the period."""
        number, time = divmod(place, len(self._times))
        return at_second(self._nth_day(period, number), self._times[time])

    def _nth_day(self, period: date, number: int) -> date:
        """Return the day of that number, counted from 0, among the period's days."""
        year, month = period.year, period.month
        mask = self._days.mask(year, month) >> period.day << period.day
        while mask.bit_count() <= number:
            number -= mask.bit_count()
            year, month = (year, month + 1) if month < DECEMBER else (year + 1, JANUARY)
            mask = self._days.mask(year, month)
        return date(year, month, members_of(mask)[number])

    @staticmethod
    def _eve(period: date) -> date:
        """Return the day before a period; no year before the first one has any days."""
        return max(period, date(FIRST, 1, 1)) - ONE_DAY
