"""The readings of an RRULE that are no plain product of days and times of the day.

`DayBits`: hourly and finer rules, whose times differ from day to day when the interval does not divide a day. A day
is a set of 86,400 seconds. `Selected`: BYSETPOS in weeks, months and years.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from itertools import takewhile

from .bits import highest, lowest, members
from .days import Days, count_days, days_after, days_before
from .instants import UTC
from .pattern import FIRST, LAST, SEARCH

DAY = 86_400  # seconds
ONE_DAY = timedelta(days=1)
KEPT_SETS = 64  # of 11 kB each
A_LONG_SEARCH = 366  # days; what was searched in vain for longer is not searched again


def tiled(tile: int, size: int, total: int) -> int:
    """Return the set `tile`, repeated every `size` numbers up to `total` at least."""
    while size < total:
        tile |= tile << size
        size *= 2
    return tile


class DayBits:
    """On each of `days` the seconds in `wanted` that lie in a period which is active.

    Periods of `unit` seconds follow each other; one in `interval` is active, that which holds `start` is.
    """

    __slots__ = ("_counts", "_days", "_hole", "_interval", "_sets", "_start", "_uniform", "_unit", "_wanted")

    def __init__(self, days: Days, wanted: int, unit: int, interval: int, start: datetime) -> None:
        self._days = days
        self._wanted = wanted
        self._unit = unit
        self._interval = interval
        self._start = (start.toordinal() * DAY + start.hour * 3600 + start.minute * 60 + start.second) // unit
        self._uniform = DAY % (interval * unit) == 0  # each day has the same seconds
        self._sets: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        # What the last long search went through: no reading lies on a day strictly between these two.
        self._hole = (date.max, date.max)

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""
        if self._days.mask(after.year, after.month) >> after.day & 1:
            second = _second_of_day(after) + 1
            rest = self._on(after.toordinal()) >> second
            if rest:
                return _at(after, second + lowest(rest))
        if not self._wanted or (self._uniform and not self._on(0)):
            return None
        limit = min(after.year + SEARCH, LAST)
        day = self._day_after(after.date(), limit)
        self._remember(after.date(), day or date(limit + 1, 1, 1))
        return None if day is None else _at(day, lowest(self._on(day.toordinal())))

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""
        if self._days.mask(before.year, before.month) >> before.day & 1:
            ended = _second_of_day(before) + (before.microsecond > 0)
            rest = self._on(before.toordinal()) & ((1 << ended) - 1)
            if rest:
                return _at(before, highest(rest))
        if not self._wanted or (self._uniform and not self._on(0)):
            return None
        limit = max(before.year - SEARCH, FIRST)
        day = self._day_before(before.date(), limit)
        self._remember(day or date(limit - 1, 12, 31), before.date())
        return None if day is None else _at(day, highest(self._on(day.toordinal())))

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""
        total = self._up_to(until) - self._up_to(after)
        if after.date() == until.date():
            return total
        if self._days.mask(after.year, after.month) >> after.day & 1:
            total += self._count_on(after.toordinal())
        if self._uniform:
            return total + count_days(self._days, after.date(), until.date()) * self._count_on(0)
        between = takewhile(lambda day: day < until.date(), days_after(self._days, after, until.year))
        return total + sum(self._count_on(day.toordinal()) for day in between)

    def _day_after(self, day: date, last_year: int) -> date | None:
        """Return the first later day that has a reading."""
        opens, closes = self._hole
        while (ahead := next(days_after(self._days, day, last_year), None)) is not None:
            if opens < ahead < closes:
                day = closes - ONE_DAY
            elif self._on(ahead.toordinal()):
                return ahead
            else:
                day = ahead
        return None

    def _day_before(self, day: date, first_year: int) -> date | None:
        """Return the last earlier day that has a reading."""
        opens, closes = self._hole
        while (behind := next(days_before(self._days, day, first_year), None)) is not None:
            if opens < behind < closes:
                day = opens + ONE_DAY
            elif self._on(behind.toordinal()):
                return behind
            else:
                day = behind
        return None

    def _remember(self, opens: date, closes: date) -> None:
        """Keep what a search went through; the next ones (of a blackout's windows, say) mostly ask about the same."""
        if (closes - opens).days > A_LONG_SEARCH:
            self._hole = (opens, closes)

    def _up_to(self, wall: datetime) -> int:
        """Return how many readings of that day are not later than `wall`."""
        if not self._days.mask(wall.year, wall.month) >> wall.day & 1:
            return 0
        return (self._on(wall.toordinal()) & ((2 << _second_of_day(wall)) - 1)).bit_count()

    def _count_on(self, ordinal: int) -> int:
        first = self._first_active(ordinal)
        if first not in self._counts:
            self._counts[first] = self._on(ordinal).bit_count()
        return self._counts[first]

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


def _second_of_day(wall: datetime) -> int:
    return wall.hour * 3600 + wall.minute * 60 + wall.second


def _at(day: date, second: int) -> datetime:
    return datetime(day.year, day.month, day.day, second // 3600, second // 60 % 60, second % 60, 0, UTC)


class Selected:
    """Of the readings of each period (a week, a month, a year) those at certain positions.

    Args:
        days: the days of all periods.
        times: the times of the day, as a set of seconds.
        positions: 1 is the first of a period, -1 the last.
        period_of: a day -> the first day of its period.
        next_period: the first day of a period -> that of the next one.
    """

    __slots__ = ("_days", "_kept", "_next_period", "_period_of", "_positions", "_times")

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
        self._kept: dict[date, tuple[datetime, ...]] = {}

    def following(self, after: datetime) -> datetime | None:
        """Return the first reading strictly later than `after`, or None."""
        for period in self._periods_from(after.date(), min(after.year + SEARCH, LAST)):
            for reading in self._in_period(period):
                if reading > after:
                    return reading
        return None

    def preceding(self, before: datetime) -> datetime | None:
        """Return the last reading strictly earlier than `before`, or None."""
        for period in self._periods_back_from(before.date(), max(before.year - SEARCH, FIRST)):
            for reading in reversed(self._in_period(period)):
                if reading < before:
                    return reading
        return None

    def count(self, after: datetime, until: datetime) -> int:
        """Return how many readings lie in (after, until]."""
        periods = takewhile(lambda period: period <= until.date(), self._periods_from(after.date(), until.year))
        return sum(after < reading <= until for period in periods for reading in self._in_period(period))

    def _periods_from(self, day: date, last_year: int) -> Iterator[date]:
        """Iterate over the period that holds the day, and the later ones that have days at all."""
        ahead: date | None = day
        while ahead is not None:
            period = self._period_of(ahead)
            yield period
            ahead = next(days_after(self._days, self._next_period(period) - ONE_DAY, last_year), None)

    def _periods_back_from(self, day: date, first_year: int) -> Iterator[date]:
        """Iterate backwards over the period that holds the day, and the earlier ones that have days at all."""
        behind: date | None = day
        while behind is not None:
            period = self._period_of(behind)
            yield period
            behind = next(days_before(self._days, period, first_year), None)

    def _in_period(self, period: date) -> tuple[datetime, ...]:
        found = self._kept.get(period)
        if found is None:
            if len(self._kept) > 1024:
                self._kept.clear()
            found = self._kept[period] = tuple(self._select(period))
        return found

    def _select(self, period: date) -> Iterator[datetime]:
        days = list(self._days_from(period, self._next_period(period)))
        size = len(days) * len(self._times)
        places = {position - 1 if position > 0 else size + position for position in self._positions}
        for place in sorted(places):
            if 0 <= place < size:
                yield _at(days[place // len(self._times)], self._times[place % len(self._times)])

    def _days_from(self, first: date, end: date) -> Iterator[date]:
        """Return the days in [first, end)."""
        year, month, begun = first.year, first.month, first.day
        while (year, month) <= (end.year, end.month):
            mask = self._days.mask(year, month) >> begun << begun
            if (year, month) == (end.year, end.month):
                mask &= (1 << end.day) - 1
            while mask:
                yield date(year, month, lowest(mask))
                mask &= mask - 1
            year, month, begun = (year, month + 1, 0) if month < 12 else (year + 1, 1, 0)
