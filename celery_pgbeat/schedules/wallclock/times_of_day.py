"""Times of the day: every combination of a set of hours, one of minutes and one of seconds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, datetime

from .bitset import highest, lowest, members
from .instants import UTC


def second_of_day(reading: datetime) -> int:
    """Return how many whole seconds of its day lie before a reading."""
    return reading.hour * 3600 + reading.minute * 60 + reading.second


def at_second(day: date, second: int) -> datetime:
    """Return the reading at that second of the day."""
    return datetime(day.year, day.month, day.day, second // 3600, second // 60 % 60, second % 60, 0, UTC)


class Clock:
    """Times of the day at whole seconds."""

    __slots__ = (
        "_first_minute",
        "_first_second",
        "_last_minute",
        "_last_second",
        "hours",
        "minutes",
        "per_day",
        "seconds",
    )

    def __init__(self, hours: int, minutes: int, seconds: int) -> None:
        self.hours = hours
        self.minutes = minutes
        self.seconds = seconds
        self._first_minute = lowest(minutes)
        self._last_minute = highest(minutes)
        self._first_second = lowest(seconds)
        self._last_second = highest(seconds)
        self.per_day = hours.bit_count() * minutes.bit_count() * seconds.bit_count()

    def first_on(self, year: int, month: int, day: int) -> datetime:
        """Return the day's first reading."""
        return datetime(year, month, day, lowest(self.hours), self._first_minute, self._first_second, 0, UTC)

    def last_on(self, year: int, month: int, day: int) -> datetime:
        """Return the day's last reading."""
        return datetime(year, month, day, highest(self.hours), self._last_minute, self._last_second, 0, UTC)

    def following(self, reading: datetime) -> datetime | None:
        """Return the first reading of that day strictly later than `reading`, or None."""
        hour = reading.hour
        if self.hours >> hour & 1:
            minute = reading.minute
            if self.minutes >> minute & 1:
                start = reading.second + 1
                rest = self.seconds >> start
                if rest:
                    second = start + (rest & -rest).bit_length() - 1
                    return datetime(reading.year, reading.month, reading.day, hour, minute, second, 0, UTC)
            minute += 1
            rest = self.minutes >> minute
            if rest:
                minute += (rest & -rest).bit_length() - 1
                return datetime(reading.year, reading.month, reading.day, hour, minute, self._first_second, 0, UTC)
        hour += 1
        rest = self.hours >> hour
        if rest:
            hour += (rest & -rest).bit_length() - 1
            return datetime(
                reading.year, reading.month, reading.day, hour, self._first_minute, self._first_second, 0, UTC
            )
        return None

    def preceding(self, reading: datetime) -> datetime | None:
        """Return the last reading of that day strictly earlier than `reading`, or None."""
        hour, minute = reading.hour, reading.minute
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                # A reading at this very second is earlier than `reading` if that has microseconds.
                rest = self.seconds & ((1 << (reading.second + (reading.microsecond > 0))) - 1)
                if rest:
                    return datetime(reading.year, reading.month, reading.day, hour, minute, highest(rest), 0, UTC)
            rest = self.minutes & ((1 << minute) - 1)
            if rest:
                return datetime(
                    reading.year, reading.month, reading.day, hour, highest(rest), self._last_second, 0, UTC
                )
        rest = self.hours & ((1 << hour) - 1)
        if rest:
            return datetime(
                reading.year, reading.month, reading.day, highest(rest), self._last_minute, self._last_second, 0, UTC
            )
        return None

    def seconds_of_day(self) -> int:
        """Return the readings of a day as a set of seconds."""
        in_hour = sum(self.seconds << 60 * minute for minute in members(self.minutes))
        return sum(in_hour << 3_600 * hour for hour in members(self.hours))

    def up_to(self, reading: datetime) -> int:
        """Return how many readings of that day are not later than `reading`."""
        seconds, minutes = self.seconds.bit_count(), self.minutes.bit_count()
        total = (self.hours & ((1 << reading.hour) - 1)).bit_count() * minutes * seconds
        if self.hours >> reading.hour & 1:
            total += (self.minutes & ((1 << reading.minute) - 1)).bit_count() * seconds
            if self.minutes >> reading.minute & 1:
                total += (self.seconds & ((2 << reading.second) - 1)).bit_count()
        return total


class FineClock:
    """Times of the day whose seconds have fractions: systemd's `*:*:0/0.25`.

    Hours and minutes are a Clock's; `fractions` are the microseconds of the minute, in ascending order.
    """

    __slots__ = ("_minutes", "fractions", "per_day")

    def __init__(self, hours: int, minutes: int, fractions: tuple[int, ...]) -> None:
        self._minutes = Clock(hours, minutes, 1)
        self.fractions = fractions
        self.per_day = self._minutes.per_day * len(fractions)

    def first_on(self, year: int, month: int, day: int) -> datetime:
        """Return the day's first reading."""
        return self._at(self._minutes.first_on(year, month, day), 0)

    def last_on(self, year: int, month: int, day: int) -> datetime:
        """Return the day's last reading."""
        return self._at(self._minutes.last_on(year, month, day), -1)

    def following(self, reading: datetime) -> datetime | None:
        """Return the first reading of that day strictly later than `reading`, or None."""
        if self._counts(reading):
            index = bisect_right(self.fractions, reading.second * 1_000_000 + reading.microsecond)
            if index < len(self.fractions):
                return self._at(reading, index)
        minute = self._minutes.following(reading)
        return None if minute is None else self._at(minute, 0)

    def preceding(self, reading: datetime) -> datetime | None:
        """Return the last reading of that day strictly earlier than `reading`, or None."""
        if self._counts(reading):
            index = bisect_left(self.fractions, reading.second * 1_000_000 + reading.microsecond)
            if index > 0:
                return self._at(reading, index - 1)
        minute = self._minutes.preceding(reading.replace(second=0, microsecond=0))
        return None if minute is None else self._at(minute, -1)

    def up_to(self, reading: datetime) -> int:
        """Return how many readings of that day are not later than `reading`."""
        minutes = self._minutes.up_to(reading)
        if not self._counts(reading):
            return minutes * len(self.fractions)
        within = bisect_right(self.fractions, reading.second * 1_000_000 + reading.microsecond)
        return (minutes - 1) * len(self.fractions) + within

    def _counts(self, reading: datetime) -> bool:
        return bool(self._minutes.hours >> reading.hour & 1 and self._minutes.minutes >> reading.minute & 1)

    def _at(self, minute: datetime, index: int) -> datetime:
        second, microsecond = divmod(self.fractions[index], 1_000_000)
        return minute.replace(second=second, microsecond=microsecond)
