"""Intervals: `every 30s`, `@every 1h30m`, `PT5M`.

Spoken ones are elapsed time. Those of ISO may have date parts, which follow the wall clock.
"""

from __future__ import annotations

import re
from datetime import datetime

from ..durations import Duration, DurationError, read_iso, read_spoken, spoken
from ..kind import Parsed
from ..source_text import SourceText
from ..wallclock.dst import DATES
from ..wallclock.grid import Grid
from ..wallclock.protocols import Times
from ..wallclock.wall_times import WallTimes
from ..wallclock.zones import Zone
from .calendar_steps import date_steps, mixed_steps

EVERY = re.compile(r"@?every\s", re.ASCII | re.IGNORECASE)
TIME_OF_DAY = re.compile(r".*\b(?:at|on)\b|(?:mon|tues|wednes|thurs|fri|satur|sun|week)day", re.ASCII | re.IGNORECASE)
NO_TIME_OF_DAY = (
    "an interval has no time of day: write cron, such as 0 3 * * * (at 3:00), 12 * * * * (at minute 12) or 0 9 * * mon"
)
DURATION = re.compile(r"P[\dT]", re.ASCII | re.IGNORECASE)


def is_interval(body: str) -> bool:
    """Return whether a text begins as an interval does."""
    return bool(EVERY.match(body) or DURATION.match(body))


def read_interval(source: SourceText) -> Parsed:
    """Read the duration of an interval, spoken or ISO's."""
    if source.body[:1] in ("P", "p"):
        return read_iso_interval(source)
    return _interval(source, read_duration(source, spoken_too=True))


def read_iso_interval(source: SourceText) -> Parsed:
    """Read an ISO 8601 duration that stands alone."""
    return _interval(source, read_duration(source))


def with_anchor(times: Times, anchor: datetime) -> Times | None:
    """Return an interval of elapsed time with another anchor; None for one with date parts, which follow a clock."""
    return times.endless_from(anchor) if isinstance(times, Grid) else None


def read_duration(source: SourceText, *, spoken_too: bool = False) -> Duration:
    """Read the body as a duration.

    Raises:
        InvalidSchedule: it is none.
    """
    try:
        return read_spoken(source.body) if spoken_too else read_iso(source.body)
    except DurationError as error:
        if spoken_too and TIME_OF_DAY.match(source.body):
            raise source.refuse("interval", NO_TIME_OF_DAY, source.at) from None
        raise source.refuse("interval", error.reason, source.at + error.at) from None


def steps_of(
    source: SourceText,
    start: datetime,
    start_reading: datetime,
    step: Duration,
    first: int = 0,
    last: int | None = None,
) -> Times:
    """Return the instants at every `step` from a start, given both as an instant and as a reading."""
    if not step.has_date_part():
        return Grid(start, step.elapsed, first, last)
    zone = source.zone()
    if step.elapsed:
        return mixed_steps(start_reading, step, zone, first, last)
    return WallTimes(date_steps(start_reading, step, first, last), zone, DATES[source.dst])


def reading_at(instant: datetime, zone: Zone) -> datetime:
    """Return what a clock in the zone shows at the instant."""
    return instant + zone.offset_at(instant)


def _interval(source: SourceText, step: Duration) -> Parsed:
    start = source.grid_start
    zone = source.zone()
    text = step.text() if step.has_date_part() else f"every {spoken(step.elapsed)}"
    return Parsed("interval", text, zone, steps_of(source, start, reading_at(start, zone), step), start)
