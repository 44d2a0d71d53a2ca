"""Durations, repeating intervals and single moments in plain English."""

from __future__ import annotations

from datetime import timedelta

from ..durations import Duration, read_iso, read_spoken
from ..words import joined

UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


def interval_in_words(text: str) -> str:
    """Return `every 1 hour and 30 minutes` for `every 1h30m`."""
    spoken = text.removeprefix("every ")
    return "every " + duration_in_words(read_iso(text) if spoken == text else read_spoken(spoken))


def iso_in_words(text: str) -> str:
    """Return a repeating interval in words."""
    head, *moments, step = text.split("/")
    words = "every " + duration_in_words(read_iso(step))
    if moments:
        words += f" from {_moment(moments[0])}"
    if len(moments) > 1:
        words += f" until {_moment(moments[1])}"
    if head != "R":
        words += f", {head[1:]} times" if head != "R1" else ", once"
    return words


def once_in_words(text: str) -> str:
    """Return a single moment in words."""
    return f"once at {_moment(text)}"


def duration_in_words(duration: Duration) -> str:
    """Return `1 day and 12 hours` for P1DT12H."""
    years, months = divmod(duration.months, 12)
    parts = [_plural(years, "year"), _plural(months, "month"), _plural(duration.days, "day")]
    rest = duration.elapsed
    for unit, length in UNITS:
        number, rest = divmod(rest, length)
        parts.append(_plural(number, unit))
    seconds = f"{rest.total_seconds():f}".rstrip("0").rstrip(".")
    parts.append(f"{seconds} second{'' if seconds == '1' else 's'}" if rest else "")
    return joined([part for part in parts if part])


def _plural(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}" if number else ""


def _moment(text: str) -> str:
    return text.replace("T", " ").replace("Z", " UTC")
