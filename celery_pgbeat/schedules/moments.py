"""Dates and date-times of ISO 8601: `2026-12-09`, `2026-12-08T12:00:00`, with `Z` or an offset, also with a space."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from .source_text import PartError
from .wallclock.days import month_length, never_occurs
from .wallclock.instants import UTC
from .wallclock.wall_times import first_instant_of
from .wallclock.zones import Zone

MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,6}))?)?(?:(Z)|([+-])(\d\d):?(\d\d))?)?",
    re.ASCII | re.IGNORECASE,
)
BOUNDS = (("year", 1000, 9997), ("month", 1, 12), ("day", 1, 31), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59))


@dataclass(frozen=True, slots=True)
class Moment:
    """A reading, and the offset that was written with it; None if the zone in force decides."""

    reading: datetime
    offset: timedelta | None

    def instant(self, zone: Zone) -> datetime:
        """Return the moment as an instant."""
        return first_instant_of(self.reading, zone) if self.offset is None else self.reading - self.offset

    def reading_in(self, zone: Zone) -> datetime:
        """Return what a clock in the zone shows at this moment."""
        if self.offset is None:
            return self.reading
        instant = self.reading - self.offset
        return instant + zone.offset_at(instant)

    def text(self) -> str:
        """Return the moment in ISO 8601; one with an offset in UTC."""
        if self.offset is None:
            return self.reading.replace(tzinfo=None).isoformat()
        return (self.reading - self.offset).replace(tzinfo=None).isoformat() + "Z"


def read_moment(text: str) -> Moment | None:
    """Read a date or date-time; None if the text has another shape.

    Raises:
        PartError: it has the shape, but there is no such date or time.
    """
    match = MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = numbers = [int(group or 0) for group in match.groups()[:6]]
    for (field, low, high), number, group in zip(BOUNDS, numbers, range(1, 7), strict=True):
        if not low <= number <= high and match.group(group) is not None:
            raise PartError(field, f"{field} {number} is not in {low}-{high}", match.start(group))
    if day > month_length(year, month):
        raise PartError("day", never_occurs(str(day), 1 << month, 1 << (year - 1970) if year >= 1970 else None), 8)
    microsecond = int((match.group(7) or "").ljust(6, "0"))
    return Moment(datetime(year, month, day, hour, minute, second, microsecond, UTC), _offset(match))


def _offset(match: re.Match[str]) -> timedelta | None:
    zulu, sign, hours, minutes = match.groups()[7:]
    if zulu:
        return timedelta(0)
    if not sign:
        return None
    if int(hours) > 23 or int(minutes) > 59:
        raise PartError("offset", f"offset {sign}{hours}:{minutes} is not in -23:59 to +23:59", match.start(9))
    return timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
