"""Days of a month, as a set. Which days depends only on the first weekday of the month and on its length."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Protocol

from .bitset import highest, lowest, members

JANUARY, FEBRUARY, DECEMBER = 1, 2, 12
LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
MONTHS_OF_LENGTH = {31: 0b1010110101010, 30: 0b0101001010000, 29: 1 << FEBRUARY, 28: 1 << FEBRUARY}
FIRST_YEAR, LAST_YEAR = 1970, 2199  # what a schedule may name as a year; bit 0 of `years` is FIRST_YEAR

# Seven day patterns laid end to end: enough to cut a month's weeks out of, wherever it begins.
WEEKS = sum(1 << 7 * week for week in range(6))
EVERY_WEEKDAY = 127

SpecialDays = Callable[[int, int], int]  # weekday of the 1st (Monday is 0), length of the month -> a set of days


class Days(Protocol):
    """The days on which something happens."""

    def mask(self, year: int, month: int) -> int:
        """Return the set of days of that month (bit 1 is the first)."""


def month_length(year: int, month: int) -> int:
    """Return how many days the month has."""
    if month == FEBRUARY and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return LENGTHS[month]


def whole_month(length: int) -> int:
    """Return the set of all days of a month of that length."""
    return (2 << length) - 2


def weekdays_in(weekdays: int, first: int, length: int) -> int:
    """Return the days that fall on one of `weekdays` (bit 0 is Monday)."""
    return (weekdays * WEEKS >> first << 1) & whole_month(length)


def nth_weekday(weekday: int, nth: int, first: int, length: int) -> int:
    """Return the nth such weekday of the month; negative counts from the month's end."""
    days = weekdays_in(1 << weekday, first, length)
    for _ in range(abs(nth) - 1):
        days &= ~(days & -days) if nth > 0 else ~(1 << highest(days)) if days else 0
    if not days:
        return 0
    return days & -days if nth > 0 else 1 << highest(days)


def from_the_end(distance: int, first: int, length: int) -> int:  # noqa: ARG001  (a SpecialDays has both)
    """Return the day `distance` days before the last of the month."""
    return 1 << (length - distance) if distance < length else 0


def nearest_workday(day: int, first: int, length: int) -> int:
    """Return the day from Monday to Friday that is nearest to `day`, within the month."""
    if day > length:
        return 0
    weekday = (first + day - 1) % 7
    if weekday == 5:
        day = day - 1 if day > 1 else day + 2
    elif weekday == 6:
        day = day + 1 if day < length else day - 2
    return 1 << day


def last_workday(first: int, length: int) -> int:
    """Return the month's last day from Monday to Friday."""
    return nearest_workday(length, first, length)


class DayRule:
    """Days chosen by month, by day of the month and by weekday, the same in every year.

    Args:
        months: set of 1..12.
        days, special_days: days of the month, as a set and as rules.
        weekdays, special_weekdays: weekdays (bit 0 is Monday), as a set and as rules.
        both: whether a day must satisfy both, or one of them.
        years: set of years counted from FIRST_YEAR; None for every year.
    """

    __slots__ = ("_both", "_days", "_masks", "_months", "_special_days", "_special_weekdays", "_weekdays", "_years")

    def __init__(
        self,
        months: int,
        days: int,
        weekdays: int,
        *,
        special_days: tuple[SpecialDays, ...] = (),
        special_weekdays: tuple[SpecialDays, ...] = (),
        both: bool = True,
        years: int | None = None,
    ) -> None:
        self._months = months
        self._days = days
        self._weekdays = weekdays
        self._special_days = special_days
        self._special_weekdays = special_weekdays
        self._both = both
        self._years = years
        self._masks: dict[int, int] = {}

    def mask(self, year: int, month: int) -> int:
        """Return the set of days of that month (bit 1 is the first)."""
        if not self._months >> month & 1:
            return 0
        if self._years is not None and (year < FIRST_YEAR or not self._years >> (year - FIRST_YEAR) & 1):
            return 0
        first = date(year, month, 1).weekday()
        length = month_length(year, month)
        shape = length * 8 + first
        found = self._masks.get(shape)
        if found is None:
            found = self._masks[shape] = self.in_shape(first, length)
        return found

    def in_shape(self, first: int, length: int) -> int:
        """Return the set of days of any month that begins on weekday `first` and has `length` days."""
        days = self._days & whole_month(length)
        for mark in self._special_days:
            days |= mark(first, length)
        weekdays = weekdays_in(self._weekdays, first, length)
        for mark in self._special_weekdays:
            weekdays |= mark(first, length)
        return days & weekdays if self._both else days | weekdays

    def ever(self) -> bool:
        """Return whether any year at all has such a day."""
        if self._years is not None:
            years = [FIRST_YEAR + bit for bit in range(self._years.bit_length()) if self._years >> bit & 1]
            return any(self.mask(year, month) for year in years for month in range(1, 13))
        return any(
            self.in_shape(first, length)
            for length, months in MONTHS_OF_LENGTH.items()
            if self._months & months
            for first in range(7)
        )


def following_day(days: Days, year: int, month: int, day: int, last_year: int) -> tuple[int, int, int] | None:
    """Return the first day later than the given one, up to the end of `last_year`."""
    rest = days.mask(year, month) >> (day + 1)
    if rest:
        return year, month, day + 1 + lowest(rest)
    while True:
        month += 1
        if month > DECEMBER:
            year, month = year + 1, JANUARY
            if year > last_year:
                return None
        mask = days.mask(year, month)
        if mask:
            return year, month, lowest(mask)


def preceding_day(days: Days, year: int, month: int, day: int, first_year: int) -> tuple[int, int, int] | None:
    """Return the last day earlier than the given one, down to the beginning of `first_year`."""
    rest = days.mask(year, month) & ((1 << day) - 1)
    if rest:
        return year, month, highest(rest)
    while True:
        month -= 1
        if month < JANUARY:
            year, month = year - 1, DECEMBER
            if year < first_year:
                return None
        mask = days.mask(year, month)
        if mask:
            return year, month, highest(mask)


def count_days(days: Days, after: date, before: date) -> int:
    """Return how many of the days lie strictly between two days of which `after` is the earlier."""
    low = -2 << after.day
    high = (1 << before.day) - 1
    if (after.year, after.month) == (before.year, before.month):
        return (days.mask(after.year, after.month) & low & high).bit_count()
    total = (days.mask(after.year, after.month) & low).bit_count()
    year, month = after.year, after.month + 1
    while (year, month) < (before.year, before.month):
        if month > DECEMBER:
            year, month = year + 1, JANUARY
            continue
        total += days.mask(year, month).bit_count()
        month += 1
    return total + (days.mask(before.year, before.month) & high).bit_count()


def seconds_of_days(days: Days, seconds_on: Callable[[date], int], first: datetime, length: int) -> int:
    """Return what `seconds_on` has for each of the days, within `length` seconds from `first`, as a set of bits."""
    found = 0
    day, at = first.date(), -(first.hour * 3600 + first.minute * 60 + first.second)
    while at < length:
        if days.mask(day.year, day.month) >> day.day & 1:
            seconds = seconds_on(day)
            found |= seconds << at if at > 0 else seconds >> -at
        day, at = day + timedelta(days=1), at + 86_400
    return found & ((1 << length) - 1)


def listed(numbers: int) -> str:
    """Return a set as people write it: `2,4`."""
    return ",".join(map(str, members(numbers)))


def never_occurs(day: str, months: int, years: int | None = None) -> str:
    """Return the reason for refusing a day that none of the months has."""
    reason = f"day {day} never occurs in month {listed(months)}"
    if day == "29" and years is not None:  # any other year would do
        reason += f" of {listed(years << FIRST_YEAR)}"
    return reason
