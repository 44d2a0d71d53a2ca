"""Recurrence rules of RFC 5545: `RRULE:FREQ=MONTHLY;BYDAY=-1FR`, with DTSTART, RDATE and EXDATE.

Nothing here steps from DTSTART to now. A rule is a set of days and times like any other schedule. A remainder tells
which hours of a day an `INTERVAL=7` hits, and `COUNT` becomes an end, found by counting when the text is read.

python-dateutil, which Celery installs, is an oracle of the tests and not used here: its iterator goes through all
occurrences since DTSTART. Next occurrence of a daily rule after six years: 4.7 ms (here 3 us), of one every 15 minutes:
0.6 s. Begun anew close to now it needs 20 to 110 us, and it can neither count nor search backwards.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta

from ..kind import Parsed
from ..moments import Moment
from ..source_text import SourceText
from ..wallclock.bitset import members, number_range
from ..wallclock.bounded import Bounded, nth
from ..wallclock.dst import DATES
from ..wallclock.exceptions import WithExceptions
from ..wallclock.grid import Grid
from ..wallclock.instants import HORIZON, LATEST, MICROSECOND
from ..wallclock.pattern import Pattern
from ..wallclock.protocols import Readings, Times
from ..wallclock.times_of_day import Clock
from ..wallclock.wall_times import WallTimes, first_instant_of
from ..wallclock.zones import Zone
from .active_periods import DAY, ActivePeriods
from .days import RuleDays
from .positions import AtPositions
from .text import RecurrenceSet, Rule, read_set

UNITS = {"SECONDLY": 1, "MINUTELY": 60, "HOURLY": 3_600}  # seconds
LAST = LATEST - timedelta(days=2)
COUNTED = 3 * HORIZON  # a COUNT that lasts longer than 300 years counts as no end


def read_rrule(source: SourceText) -> Parsed:
    """Read a recurrence set; a zone in DTSTART wins over the zone in force."""
    parts = read_set(source)
    if parts.zone is not None:
        source = replace(source, timezone=parts.zone)
    zone = source.zone()
    start = _start(source, parts, zone)
    readings = None if parts.rule is None else _of_rule(source, parts.rule, start, zone)
    added, added_late = _passes(parts.added, zone)
    removed, removed_late = _passes(parts.removed, zone)
    if readings is None or added or removed:
        readings = WithExceptions(readings, added, removed)
    times: Times = WallTimes(readings, zone, DATES[source.dst])
    if added_late or removed_late:
        times = WithExceptions(times, added_late, removed_late)
    anchor = source.grid_start if parts.start is None and parts.rule is not None else None
    return Parsed("rrule", parts.text(), zone, times, anchor)


def _passes(moments: tuple[Moment, ...], zone: Zone) -> tuple[set[datetime], set[datetime]]:
    """Return moments as readings, except those in the second pass of repeated time, which are returned as instants."""
    late = {moment for moment in moments if moment.instant(zone) != first_instant_of(moment.reading_in(zone), zone)}
    return {moment.reading_in(zone) for moment in moments if moment not in late}, {m.instant(zone) for m in late}


def _start(source: SourceText, parts: RecurrenceSet, zone: Zone) -> datetime:
    if parts.start is not None:
        return parts.start.reading_in(zone)
    anchor = source.grid_start
    return min((anchor + zone.offset_at(anchor)).replace(microsecond=0), LAST)


def _of_rule(source: SourceText, rule: Rule, start: datetime, zone: Zone) -> Readings:
    readings = _endless(rule, start)
    if readings.following(start - MICROSECOND) is None:
        raise source.refuse("RRULE", "this rule has no occurrence within 100 years of its start", source.at)
    last = LAST
    if rule.until is not None:
        last = _until(rule, zone)
        if last < start:
            raise source.refuse("UNTIL", "UNTIL lies before DTSTART", source.at)
    elif rule.count is not None:
        last = nth(readings, start, rule.count, start + min(COUNTED, last - start)) or last
    return Bounded(readings, start, last)


def _until(rule: Rule, zone: Zone) -> datetime:
    """Return the last reading that UNTIL allows; a date means the whole of its day."""
    assert rule.until is not None
    if rule.until_is_date:
        return datetime.combine(rule.until.reading, time.max, rule.until.reading.tzinfo)
    if rule.until.offset is None:
        return rule.until.reading
    instant = rule.until.instant(zone)
    period = zone.period_at(instant)
    # In the second pass of repeated time all its readings have been shown already.
    return max(instant, period.repeats_until - MICROSECOND) + period.offset


def _endless(rule: Rule, start: datetime) -> Readings:
    """Return the rule's readings without COUNT and UNTIL, also before the start."""
    unit = UNITS.get(rule.frequency)
    if unit is not None and not rule.numbers and not rule.weekdays:
        return Grid(start, timedelta(seconds=unit * rule.interval))
    days = RuleDays(rule, start.date())
    hours, minutes, seconds = _times(rule, start)
    if unit is None and not rule.by("BYSETPOS"):
        return Pattern(Clock(hours, minutes, seconds), days)
    wanted = _seconds_of_day(rule, hours, minutes, seconds)
    if unit is not None:
        return ActivePeriods(days, wanted, unit, rule.interval, start)
    if rule.frequency == "DAILY":
        return ActivePeriods(days, wanted, DAY, 1, start)
    return _selected(rule, days, wanted)


def _times(rule: Rule, start: datetime) -> tuple[int, int, int]:
    """Return the sets of hours, minutes and seconds; a unit coarser than the frequency is not limited unless named."""
    unit = UNITS.get(rule.frequency, DAY)
    parts = (("BYHOUR", start.hour, 24, 3_600), ("BYMINUTE", start.minute, 60, 60), ("BYSECOND", start.second, 60, 1))
    hours, minutes, seconds = (
        sum(1 << number for number in rule.by(name)) or (number_range(0, size - 1) if unit <= length else 1 << first)
        for name, first, size, length in parts
    )
    return hours, minutes, seconds


def _seconds_of_day(rule: Rule, hours: int, minutes: int, seconds: int) -> int:
    """Return the times of the day as a set of seconds, with BYSETPOS applied for days and finer periods."""
    positions = rule.by("BYSETPOS")
    if rule.frequency == "SECONDLY" and positions and not {1, -1} & set(positions):
        return 0  # a second has one place
    in_minute = _at_positions(seconds, positions) if rule.frequency == "MINUTELY" else seconds
    in_hour = sum(in_minute << 60 * minute for minute in members(minutes))
    if rule.frequency == "HOURLY":
        in_hour = _at_positions(in_hour, positions)
    in_day = sum(in_hour << 3_600 * hour for hour in members(hours))
    return _at_positions(in_day, positions) if rule.frequency == "DAILY" else in_day


def _at_positions(numbers: int, positions: tuple[int, ...]) -> int:
    """Return those members of a set that BYSETPOS names; all of them without BYSETPOS."""
    if not positions:
        return numbers
    ordered = members(numbers)
    places = {position - 1 if position > 0 else len(ordered) + position for position in positions}
    return sum(1 << ordered[place] for place in places if 0 <= place < len(ordered))


def _selected(rule: Rule, days: RuleDays, wanted: int) -> AtPositions:
    positions = rule.by("BYSETPOS")

    def week_of(day: date) -> date:
        return day - timedelta(days=(day.weekday() - rule.week_start) % 7)

    if rule.frequency == "WEEKLY":
        return AtPositions(days, wanted, positions, week_of, lambda week: week + timedelta(days=7))
    if rule.frequency == "MONTHLY":
        return AtPositions(
            days,
            wanted,
            positions,
            lambda day: day.replace(day=1),
            lambda month: (month + timedelta(days=31)).replace(day=1),
        )
    return AtPositions(
        days, wanted, positions, lambda day: date(day.year, 1, 1), lambda year: date(year.year + 1, 1, 1)
    )
