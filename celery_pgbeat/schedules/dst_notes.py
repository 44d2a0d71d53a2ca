"""What the changes of the clocks do to a schedule, in plain English.

Only readings of a wall clock have notes: cron, calendar events, recurrence rules, single dates, and steps of whole
days and months. Elapsed time does not depend on the clocks, and a mixed step (P1DT1H) has no reading of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from .schedule import Schedule
from .wallclock.bounded import Bounded
from .wallclock.dst import LONGEST_CAUGHT_UP, Gap, Repeat
from .wallclock.instants import LATEST, MICROSECOND, as_utc, horizon_after, within_reach
from .wallclock.wall_times import MARGIN, WallTimes
from .wallclock.zones import Period
from .words import joined

LISTED = 3  # readings of one gap; where there are more, only the first is named


def dst_note(schedule: Schedule, occurrence: datetime) -> str | None:
    """Return in words what a change of the clocks does to an occurrence; None if nothing.

    Args:
        schedule: of any kind.
        occurrence: one of its occurrences.

    Raises:
        ValueError: `occurrence` is naive.

    Example:
        >>> from celery_pgbeat.schedules import parse
        >>> nightly = parse("30 2 * * *", "Europe/Berlin")
        >>> dst_note(nightly, datetime.fromisoformat("2027-03-28T03:00:00+02:00"))
        'the clocks go forward from 02:00 to 03:00: 02:30 does not exist, so it runs right after'
    """
    wall = _wall_times(schedule)
    if wall is None:
        return None
    instant = within_reach(as_utc(occurrence))
    period = wall.zone.period_at(instant)
    if instant < period.affected_until and period.gap:
        return _out_of_gap(wall, period, instant)
    if instant < period.repeats_until:
        return _in_repeated_time(wall, period, instant)
    ahead = wall.zone.period_at(min(instant + MARGIN, LATEST - MICROSECOND))
    if ahead.start - (ahead.repeats_until - ahead.start) <= instant < ahead.start:
        return _in_repeated_time(wall, ahead, instant)
    return None


def dst_skips(schedule: Schedule, after: datetime, until: datetime | None = None) -> Iterator[str]:
    """Iterate in words over the changes of the clocks in (after, until] that leave out readings for good.

    Args:
        schedule: of any kind.
        after: where to begin.
        until: where to end; None for 100 years later.

    Raises:
        ValueError: an argument is naive.

    Example:
        >>> from datetime import timezone
        >>> from celery_pgbeat.schedules import parse
        >>> march, april = (datetime(2027, month, 1, tzinfo=timezone.utc) for month in (3, 4))
        >>> list(dst_skips(parse("02:30", "Europe/Berlin"), march, april))
        ['on Sun 2027-03-28 the clocks go forward from 02:00 to 03:00: 02:30 does not exist, so nothing runs for it']
    """
    wall = _wall_times(schedule)
    at = within_reach(as_utc(after))
    last = horizon_after(at) if until is None else within_reach(as_utc(until))
    while wall is not None and (at := wall.zone.period_at(at).end) <= last:
        period = wall.zone.period_at(at)
        left_out = _left_out(wall, period)
        if left_out.number and _gives_nothing(wall, period):
            day = f"{period.start + period.before:%a %Y-%m-%d}"
            missing = left_out.do_not_exist(period)
            yield f"on {day} {_forward(period)}: {missing}, so nothing runs for {left_out.pronoun}"


class LeftOut(NamedTuple):
    """Readings that fall into a gap: how many, and the first few of them."""

    number: int
    first: tuple[datetime, ...]

    @property
    def pronoun(self) -> str:
        """The pronoun for them in a sentence."""
        return "it" if self.number == 1 else "them"

    def do_not_exist(self, period: Period) -> str:
        """Return that they do not exist, in words."""
        if self.number == 1:
            return f"{_clock(self.first[0], period)} does not exist"
        if self.number <= LISTED:
            return f"{joined([_clock(reading, period) for reading in self.first])} do not exist"
        return f"{_clock(self.first[0], period)} and {self.number - 1} later times do not exist"


def _wall_times(schedule: Schedule) -> WallTimes | None:
    times = schedule.times.times if isinstance(schedule.times, Bounded) else schedule.times
    return times if isinstance(times, WallTimes) else None


def _left_out(wall: WallTimes, period: Period) -> LeftOut:
    after = period.start + period.before - MICROSECOND
    number = wall.readings.count(after, after + period.gap)
    return LeftOut(number, tuple(islice(_readings(wall, after), min(number, LISTED))))


def _readings(wall: WallTimes, after: datetime) -> Iterator[datetime]:
    while (reading := wall.readings.following(after)) is not None:
        yield reading
        after = reading


def _gives_nothing(wall: WallTimes, period: Period) -> bool:
    return wall.rule.gap is Gap.NOTHING or (wall.rule.gap is Gap.AFTER and period.gap >= LONGEST_CAUGHT_UP)


def _out_of_gap(wall: WallTimes, period: Period, instant: datetime) -> str | None:
    """Return the note on an instant to which a gap may have moved one of its readings, or all of them."""
    left_out = LeftOut(0, ())
    if wall.rule.gap is Gap.SHIFT and _shows(wall, instant + period.before):
        left_out = LeftOut(1, (instant + period.before,))
    elif wall.rule.gap is Gap.AFTER and instant == period.start and not _gives_nothing(wall, period):
        left_out = _left_out(wall, period)
    if not left_out.number:
        return None
    if _shows(wall, instant + period.offset):
        then = f"this run stands for {left_out.pronoun} too"
    elif wall.rule.gap is Gap.SHIFT:
        then = f"so it runs at {_clock(instant + period.offset, period)}"
    else:
        then = "so it runs right after" if left_out.number == 1 else "so they run once, right after"
    return f"{_forward(period)}: {left_out.do_not_exist(period)}, {then}"


def _in_repeated_time(wall: WallTimes, period: Period, instant: datetime) -> str:
    """Return the note on an instant whose reading comes twice, because of the change at the start of `period`."""
    first = instant < period.start
    reading = _clock(instant + (period.before if first else period.offset), period)
    if wall.rule.repeat is Repeat.FIRST:
        passes = "it runs in the first pass only"
    else:
        passes = f"this is the {'first' if first else 'second'} pass"
    return f"the clocks go back from {_leap(period)}: {reading} comes twice, {passes}"


def _shows(wall: WallTimes, reading: datetime) -> bool:
    return wall.readings.following(reading - MICROSECOND) == reading


def _forward(period: Period) -> str:
    return f"the clocks go forward from {_leap(period)}"


def _leap(period: Period) -> str:
    return f"{_clock(period.start + period.before, period)} to {_clock(period.start + period.offset, period)}"


def _clock(reading: datetime, period: Period) -> str:
    """Return the time of a reading, with its date if the clocks leap over a whole day."""
    exact = "auto" if reading.second or reading.microsecond else "minutes"
    whole_day = abs(period.offset - period.before) >= timedelta(days=1)
    return reading.replace(tzinfo=None).isoformat(" ", exact) if whole_day else reading.time().isoformat(exact)
