"""The days of an RRULE: all its parts from a day upwards, as one set of days a year.

As in python-dateutil, each part is a condition on the day and a day needs them all; RFC 5545's table of "expand" and
"limit" comes to the same.
"""

from __future__ import annotations

from datetime import date, timedelta

from ..wallclock.bitset import number_range, tiled
from ..wallclock.days import LENGTHS, month_length, nth_weekday, weekdays_in, whole_month
from ..wallclock.pattern import FIRST, LAST
from .text import Rule

KEPT = 512  # years

# How many days of a common year lie before each month.
BEFORE = tuple(sum(LENGTHS[:month]) for month in range(13))
FEBRUARY = 2


class RuleDays:
    """The days on which a rule that started at `start` may have occurrences."""

    __slots__ = ("_any_weekday", "_days", "_months", "_nth", "_rule", "_shapes", "_start", "_years")

    def __init__(self, rule: Rule, start: date) -> None:
        self._rule = rule
        self._start = start
        self._months = set(rule.by("BYMONTH"))
        self._days = rule.by("BYMONTHDAY")
        self._any_weekday = sum(1 << weekday for nth, weekday in rule.weekdays if not nth)
        self._nth = [(nth, weekday) for nth, weekday in rule.weekdays if nth]
        self._years: dict[int, int] = {}
        self._shapes: dict[tuple[int, int, int, int], int] = {}
        if not (rule.by("BYWEEKNO") or rule.by("BYYEARDAY") or rule.by("BYMONTHDAY") or rule.weekdays):
            self._take_from_start()

    def _take_from_start(self) -> None:
        """Fill in what the rule leaves out: the weekday, day or date of the first occurrence."""
        if self._rule.frequency == "WEEKLY":
            self._any_weekday = 1 << self._start.weekday()
        elif self._rule.frequency in ("MONTHLY", "YEARLY"):
            self._days = (self._start.day,)
            if self._rule.frequency == "YEARLY":
                self._months = self._months or {self._start.month}

    def mask(self, year: int, month: int) -> int:
        """Return the set of days of that month (bit 1 is the first)."""
        if not FIRST <= year <= LAST:  # the weeks of 9999 would need the year 10000
            return 0
        whole_year = self._years.get(year)
        if whole_year is None:
            if len(self._years) > KEPT:
                self._years.clear()
            whole_year = self._years[year] = self._in_year(year)
        return (whole_year >> _days_before(year, month) << 1) & whole_month(month_length(year, month))

    def _in_year(self, year: int) -> int:
        """Return the set of days of the year (bit 0 is 1 January)."""
        days = self._in_interval(year)
        if not days:
            return 0
        # Years with the same first weekday, the same length and neighbours of the same lengths have the same days.
        shape = (date(year, 1, 1).weekday(), _year_length(year - 1), _year_length(year), _year_length(year + 1))
        wanted = self._shapes.get(shape)
        if wanted is None:
            wanted = self._shapes[shape] = self._in_shape(year)
        return days & wanted

    def _in_shape(self, year: int) -> int:
        """Return the days that satisfy all parts but the interval, in any year of the same shape."""
        length = _year_length(year)
        days = (1 << length) - 1
        if self._months or self._days or self._any_weekday or self._nth:
            days &= self._by_month(year)
        if self._rule.by("BYYEARDAY"):
            numbers = {number - 1 if number > 0 else length + number for number in self._rule.by("BYYEARDAY")}
            days &= sum(1 << number for number in numbers if 0 <= number < length)
        if days and self._rule.by("BYWEEKNO"):
            days &= self._by_week_number(year)
        return days

    def _in_interval(self, year: int) -> int:
        rule, every_day = self._rule, (1 << _year_length(year)) - 1
        if rule.frequency == "YEARLY":
            return 0 if (year - self._start.year) % rule.interval else every_day
        if rule.frequency == "MONTHLY":
            begun = self._start.year * 12 + self._start.month
            return sum(
                _length_of_month(year, month)
                for month in range(1, 13)
                if (year * 12 + month - begun) % rule.interval == 0
            )
        if rule.frequency == "WEEKLY":
            return _blocks(self._week_start(self._start), 7, rule.interval, year) & every_day
        if rule.frequency == "DAILY":
            return _blocks(self._start, 1, rule.interval, year) & every_day
        return every_day

    def _by_month(self, year: int) -> int:
        """Return the days that satisfy BYMONTH, BYMONTHDAY and BYDAY."""
        found = 0
        for month in self._months or range(1, 13):
            length, first = month_length(year, month), date(year, month, 1).weekday()
            days = whole_month(length)
            if self._days:
                numbers = {number if number > 0 else length + 1 + number for number in self._days}
                days &= sum(1 << number for number in numbers if 0 < number <= length)
            if self._any_weekday or self._nth:
                days &= self._weekdays(year, month, first, length)
            found |= days >> 1 << _days_before(year, month)
        return found

    def _weekdays(self, year: int, month: int, first: int, length: int) -> int:
        days = weekdays_in(self._any_weekday, first, length)
        if self._rule.frequency == "MONTHLY" or self._rule.by("BYMONTH"):
            for nth, weekday in self._nth:
                days |= nth_weekday(weekday, nth, first, length)
        else:
            for nth, weekday in self._nth:
                days |= (_nth_of_year(year, nth, weekday) >> _days_before(year, month) << 1) & whole_month(length)
        return days

    def _by_week_number(self, year: int) -> int:
        """Return the days of the wanted weeks; a week belongs to the year that has four of its days."""
        wanted, found = self._rule.by("BYWEEKNO"), 0
        monday = self._week_start(date(year, 1, 1))
        while monday.year <= year:
            fourth = monday + timedelta(days=3)
            number = (fourth - date(fourth.year, 1, 1)).days // 7 + 1
            last = _weeks_in(fourth.year, self._rule.week_start)
            if number in wanted or number - last - 1 in wanted:
                offset = (monday - date(year, 1, 1)).days
                found |= 127 << offset if offset >= 0 else 127 >> -offset
            monday += timedelta(days=7)
        return found & ((1 << _year_length(year)) - 1)

    def _week_start(self, day: date) -> date:
        return day - timedelta(days=(day.weekday() - self._rule.week_start) % 7)


def _year_length(year: int) -> int:
    return 337 + month_length(year, 2)


def _days_before(year: int, month: int) -> int:
    """Return how many days of the year lie before the month."""
    return BEFORE[month] + (month > FEBRUARY and month_length(year, FEBRUARY) > LENGTHS[FEBRUARY])


def _length_of_month(year: int, month: int) -> int:
    return whole_month(month_length(year, month)) >> 1 << _days_before(year, month)


def _blocks(start: date, length: int, interval: int, year: int) -> int:
    """Return blocks of `length` days, one in `interval`, of which one begins at `start`."""
    period = length * interval
    first = (start - date(year, 1, 1)).days % period - period
    block = (1 << length) - 1
    found = block >> -first
    if first + period < 366:
        found |= tiled(block, period, 366) << (first + period)
    return found


def _nth_of_year(year: int, nth: int, weekday: int) -> int:
    """Return the nth such weekday of the year; negative counts from its end."""
    length = _year_length(year)
    first = (weekday - date(year, 1, 1).weekday()) % 7
    days = number_range(first, length - 1, 7)
    last = first + (length - 1 - first) // 7 * 7
    day = first + (nth - 1) * 7 if nth > 0 else last + (nth + 1) * 7
    return days & 1 << day if 0 <= day < length else 0


def _weeks_in(year: int, week_start: int) -> int:
    """Return how many weeks belong to the year: the first is the one with 4 January in it."""

    def week_of(ordinal: int) -> int:
        return ordinal - (ordinal - 1 - week_start) % 7

    fourth = date(year, 1, 4).toordinal()
    return (week_of(fourth + _year_length(year)) - week_of(fourth)) // 7
