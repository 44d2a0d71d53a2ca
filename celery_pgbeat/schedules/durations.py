"""Lengths of time: ISO 8601 durations (`P1DT2H`) and the spoken ones (`1h30m`, `5 minutes`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from .wallclock.days import month_length
from .wallclock.instants import MICROSECOND, UTC

LONGEST = timedelta(days=36_525)  # 100 years, the horizon of every search
LONGEST_MONTHS = 1_200
TOO_LONG = "an interval must not be longer than 100 years"

_NUMBER = r"(\d+(?:[.,]\d+)?)"
ISO = re.compile(
    rf"(-)?P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII | re.IGNORECASE,
)
SPOKEN = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([a-z]+)", re.ASCII | re.IGNORECASE)
UNITS = {
    "us": MICROSECOND,
    "ms": timedelta(milliseconds=1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
}


class DurationError(Exception):
    """What is wrong with a duration: the reason, and where in its text."""

    def __init__(self, reason: str, at: int = 0) -> None:
        super().__init__(reason, at)
        self.reason = reason
        self.at = at


@dataclass(frozen=True, slots=True)
class Duration:
    """Months and days by the calendar, then elapsed time."""

    months: int
    days: int
    elapsed: timedelta

    def has_date_part(self) -> bool:
        """Return whether there are months or days, which a wall clock counts."""
        return bool(self.months or self.days)

    def after_date_parts(self, reading: datetime, times: int = 1) -> datetime:
        """Return the reading that is `times` times the months and days later, clamped to the end of the month.

        Raises:
            OverflowError: there is no such year.
        """
        months = reading.month - 1 + self.months * times
        year, month = reading.year + months // 12, months % 12 + 1
        if not 1 <= year <= 9999:
            raise OverflowError(year)
        day = min(reading.day, month_length(year, month))
        clamped = reading.replace(year=year, month=month, day=day, tzinfo=UTC)
        return clamped + timedelta(days=self.days * times)

    def text(self) -> str:
        """Return the duration in ISO 8601."""
        years, months = divmod(self.months, 12)
        date = "".join(f"{number}{unit}" for number, unit in ((years, "Y"), (months, "M"), (self.days, "D")) if number)
        hours, rest = divmod(self.elapsed, timedelta(hours=1))
        minutes, rest = divmod(rest, timedelta(minutes=1))
        time = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
        if rest:
            time += f"{_seconds(rest)}S"
        return "P" + date + (f"T{time}" if time else "")


def read_iso(text: str) -> Duration:
    """Read an ISO 8601 duration that is longer than zero.

    Raises:
        DurationError: it is not one, or too long, or zero, or negative.
    """
    match = ISO.fullmatch(text)
    if match is None or text[-1] in "PpTt":
        raise DurationError(f"{text!r} is not an ISO 8601 duration such as PT5M or P1DT12H")
    negative, years, months, weeks, days, _, hours, minutes, seconds = match.groups()
    parts = [years, months, weeks, days, hours, minutes, seconds]
    given = [part for part in parts if part is not None]
    for part in given[:-1] + [part for part in (years, months, weeks, days) if part]:
        if not part.isdigit():
            raise DurationError(f"a fraction may only stand in the last of hours, minutes and seconds, not {part!r}")
    whole_months = _bounded(years) * 12 + _bounded(months)
    whole_days = _bounded(weeks) * 7 + _bounded(days)
    elapsed = _elapsed([(hours, "h"), (minutes, "m"), (seconds, "s")])
    if whole_months > LONGEST_MONTHS or timedelta(days=whole_days) + elapsed > LONGEST:
        raise DurationError(TOO_LONG)
    if negative or not (whole_months or whole_days or elapsed):
        raise DurationError("an interval must be longer than 0")
    return Duration(whole_months, whole_days, elapsed)


def read_spoken(text: str) -> Duration:
    """Read `30s`, `1h30m`, `5 minutes`, `minute`: elapsed time longer than zero.

    Raises:
        DurationError: it is not one, or too long, or zero, or negative.
    """
    at, amounts = 0, []
    while at < len(text):
        match = SPOKEN.match(text, at)
        if match is None or (at and match.group(1) is None):
            break
        number, unit = match.groups()
        if unit.lower() not in UNITS:
            raise DurationError(_unit_refused(unit), match.start(2))
        amounts.append((number or "1", unit.lower()))
        at = match.end()
    if text.lstrip().startswith("-"):
        raise DurationError("an interval must be longer than 0")
    if at < len(text) or not amounts:
        raise DurationError(f"{text[at:].strip()!r} is not a duration such as 30s, 5 minutes or 1h30m", at)
    elapsed = _elapsed(amounts)
    if not elapsed:
        raise DurationError("an interval must be longer than 0")
    return Duration(0, 0, elapsed)


def spoken(elapsed: timedelta) -> str:
    """Return an elapsed time as `1d2h30m0.5s`."""
    parts = []
    for unit in ("d", "h", "m"):
        number, elapsed = divmod(elapsed, UNITS[unit])
        if number:
            parts.append(f"{number}{unit}")
    if elapsed:
        parts.append(f"{_seconds(elapsed)}s")
    return "".join(parts)


def _unit_refused(unit: str) -> str:
    if unit.lower().rstrip("s") in ("month", "year", "mon", "yr", "y", "quarter"):
        return f"a {unit.lower().rstrip('s')} has no fixed length: write P1M or P1Y, which follow the calendar"
    return f"{unit!r} is not a unit of time: use ms, s, m, h, d or w"


def _bounded(number: str | None) -> int:
    """Return the number, or a large one instead of a very large one: a text may have 250 digits."""
    return min(int(number), 1_000_000) if number else 0


def _elapsed(amounts: list[tuple[str | None, str]]) -> timedelta:
    """Add up numbers of units, to the microsecond.

    Raises:
        DurationError: the sum is over LONGEST.
    """
    total = Decimal(0)
    for number, unit in amounts:
        if number:
            total += Decimal(number.replace(",", ".")) * (UNITS[unit] // MICROSECOND)
    if total > LONGEST // MICROSECOND:
        raise DurationError(TOO_LONG)
    return timedelta(microseconds=round(total))


def _seconds(rest: timedelta) -> str:
    whole, fraction = divmod(rest // MICROSECOND, 1_000_000)
    return str(whole) + (f".{fraction:06}".rstrip("0") if fraction else "")
