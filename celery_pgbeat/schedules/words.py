"""Words that the descriptions of several kinds share."""

from __future__ import annotations

from datetime import timedelta

from .durations import Duration

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


def joined(items: list[str], word: str = "and") -> str:
    """Return `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}"


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


def every(duration: Duration) -> str:
    """Return `every 1 day and 12 hours` for P1DT12H, and `every day` for P1D."""
    words = duration_in_words(duration)
    return f"every {words.removeprefix('1 ') if ' and ' not in words else words}"


def _plural(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}" if number else ""
