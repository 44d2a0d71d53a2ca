"""Turns a schedule as it is written in Python into the text, zone and anchor of a row."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.durations import spoken
from celery_pgbeat.schedules.wallclock.zones import zone_named

NAME = re.compile(r"[a-z]+")
# Celery's `relative` intervals are counted from here: midnight on the wall clock of the row's zone. It is a Monday, so
# that weeks begin on Mondays; and recent, because a zone may have had another offset in 1970.
RELATIVE_FROM = datetime(2024, 1, 1)  # noqa: DTZ001
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Timing:
    """A schedule as text, with its zone and anchor: what `cron` and `every` return.

    Attributes:
        text: the schedule, as it would be written in SQL.
        timezone: IANA name of the schedule's zone; None for the app's.
        anchor: where the grid of an interval starts; None for the instant at which the schedule is set. A naive
            datetime is read in the zone.
    """

    text: str
    timezone: str | None = None
    anchor: datetime | None = None


def cron(expression: str, timezone: str | tzinfo | None = None) -> Timing:
    """Declare a cron schedule, of five fields, or six with the seconds first, or seven with the year last.

    Args:
        expression: such as `*/5 * * * *`, `0 9 * * mon-fri`, `@daily`.
        timezone: the schedule's zone, an IANA name or a ZoneInfo; None for the app's.

    Raises:
        InvalidSchedule: the expression or the zone is wrong; names the field and the value.

    Example:
        >>> cron("0 3 * * *", timezone="Europe/Berlin")
        Timing(text='0 3 * * *', timezone='Europe/Berlin', anchor=None)
    """
    text = _stripped(expression)
    zone = zone_name(timezone) if isinstance(timezone, tzinfo) else timezone
    if parse(text, zone or "UTC").kind != "cron":
        raise InvalidSchedule(text, "schedule", "not a cron expression of five, six or seven fields")
    return Timing(text, zone)


def every(interval: str | timedelta | float) -> Timing:
    """Declare an interval. It is counted from the instant at which it is set; later runs do not drift.

    Args:
        interval: text such as `30s`, `5 minutes`, `1h30m`, `PT5M`; a timedelta; or a number of seconds.

    Raises:
        InvalidSchedule: it is not an interval, or not longer than zero.

    Example:
        >>> every("1h30m")
        Timing(text='every 1h30m', timezone=None, anchor=None)
    """
    if isinstance(interval, (timedelta, int, float)):
        return _interval(interval)
    text = _stripped(interval)
    text = text if text[:1] in ("P", "p") or text.lower().startswith("every ") else f"every {text}"
    if parse(text).kind != "interval":
        raise InvalidSchedule(text, "interval", "not an interval such as 30s, 5 minutes or PT1H")
    return Timing(text)


def timing_of(when: Any, app_timezone: str = "UTC") -> Timing:
    """Return the Timing of a schedule, in whatever form it is declared.

    Args:
        when: a Timing, text, a timedelta, a number of seconds, a date or datetime (once), or Celery's `crontab`,
            `schedule` or `solar`.
        app_timezone: the app's zone, for a schedule without one. Python always declares a zone, so that two equal
            declarations are equal rows.

    Raises:
        InvalidSchedule: it cannot be stored as text.

    Example:
        >>> timing_of(90).text
        'every 1m30s'
    """
    timing = _convert(when)
    zone, anchor = timing.timezone or app_timezone, timing.anchor
    if anchor is not None and anchor.tzinfo is None:
        anchor = anchor.replace(tzinfo=ZoneInfo(zone_named(zone).name))
    return Timing(timing.text, zone, anchor)


def own_timing(when: Any) -> Timing:
    """Return the Timing of a schedule, with a zone and an anchor only if it has some of its own.

    Raises:
        InvalidSchedule: it cannot be stored as text.
    """
    return _convert(when)


def relative_timing(length: timedelta | float) -> Timing:
    """Return an interval as Celery's `relative` means it: whole days, hours and minutes of the zone's wall clock.

    Whole days are days of the calendar, from midnight to midnight; everything shorter is elapsed time.

    Raises:
        InvalidSchedule: it is not an interval, or not longer than zero.
    """
    text = _interval(length).text
    span = length if isinstance(length, timedelta) else timedelta(seconds=length)
    return Timing(text if span % DAY else f"P{span // DAY}D", anchor=RELATIVE_FROM)


def app_timezone(app: Any) -> str:
    """Return the IANA name of a Celery app's time zone.

    Raises:
        InvalidSchedule: the app runs in a zone without a name.
    """
    return zone_name(app.timezone)


def zone_name(zone: tzinfo) -> str:
    """Return the IANA name of a time zone object, zoneinfo's or pytz's.

    Raises:
        InvalidSchedule: it has none. A fixed offset is refused, because it has no daylight saving time.
    """
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name is None and zone == timezone.utc:
        name = "UTC"
    if name is None:
        raise InvalidSchedule(
            str(zone),
            "timezone",
            "no time zone with an IANA name: use one such as zoneinfo.ZoneInfo('Europe/Berlin')",
        )
    return str(name)


def _convert(when: Any) -> Timing:
    if isinstance(when, Timing):
        return Timing(_stripped(when.text), when.timezone, when.anchor)
    if isinstance(when, str):
        return Timing(_stripped(when))
    if isinstance(when, (timedelta, int, float)):
        return _interval(when)
    if isinstance(when, datetime):
        return _once(when)
    if isinstance(when, date):
        return Timing(when.isoformat())
    kind = type(when)
    convert = CELERY.get(f"{kind.__module__}.{kind.__qualname__}")
    if convert is not None:
        return convert(when)
    raise _refused(when, kind)


def _refused(when: Any, kind: type) -> InvalidSchedule:
    name = f"{kind.__module__}.{kind.__qualname__}"
    if any(parent.__module__ == "celery.schedules" for parent in kind.__mro__):
        reason = (
            f"the class {name} decides in Python when it is due, and a row can only hold text: "
            f"write it as cron, an interval, ISO 8601, a calendar event or an RRULE. If it reads a database, schedule "
            f"the task as often as it reads, and let the task look"
        )
    else:
        reason = (
            f"a {kind.__qualname__} is not a schedule: use cron(...), every(...), text, a timedelta, seconds, a "
            f"datetime, or Celery's crontab, schedule or solar"
        )
    return InvalidSchedule(repr(when), "schedule", reason)


def _stripped(text: Any) -> str:
    if not isinstance(text, str):
        raise InvalidSchedule(repr(text), "schedule", f"a {type(text).__qualname__}, not text")
    return text.strip()


def _interval(length: timedelta | float) -> Timing:
    if isinstance(length, bool) or (isinstance(length, (int, float)) and not math.isfinite(length)):
        raise InvalidSchedule(repr(length), "interval", "not an interval: give a number of seconds or a timedelta")
    try:
        span = length if isinstance(length, timedelta) else timedelta(seconds=length)
    except OverflowError:
        raise InvalidSchedule(repr(length), "interval", "an interval must not be longer than 100 years") from None
    if span <= timedelta(0):
        raise InvalidSchedule(str(length), "interval", "an interval must be longer than 0")
    text = f"every {spoken(span)}"
    parse(text)
    return Timing(text)


def _once(instant: datetime) -> Timing:
    if instant.tzinfo is None:
        return Timing(instant.isoformat())
    return Timing(instant.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z")


def _crontab(schedule: Any) -> Timing:
    """Write Celery's crontab in the order of cron. The prefix keeps Celery's rule: a day must fit both day fields."""
    fields = (
        _field(schedule._orig_minute),
        _field(schedule._orig_hour),
        _field(schedule._orig_day_of_month),
        _named(_field(schedule._orig_month_of_year)),
        _named(_field(schedule._orig_day_of_week)),
    )
    return Timing(f"crontab: {' '.join(fields)}", _own_zone(schedule))


def _celery_interval(schedule: Any) -> Timing:
    if schedule.run_every is None:
        raise InvalidSchedule(repr(schedule), "interval", "run_every is missing")
    return relative_timing(schedule.run_every) if schedule.relative else _interval(schedule.run_every)


def _solar(schedule: Any) -> Timing:
    return Timing(f"solar: {schedule.event} {schedule.lat} {schedule.lon}")


# By name, so that Celery need not be imported. Only these classes: a subclass may be due at other times.
CELERY: dict[str, Callable[[Any], Timing]] = {
    "celery.schedules.crontab": _crontab,
    "celery.schedules.schedule": _celery_interval,
    "celery.schedules.solar": _solar,
    "django_celery_beat.tzcrontab.TzAwareCrontab": _crontab,
}


def _field(given: int | str | Iterable[int]) -> str:
    if isinstance(given, str):
        return "".join(given.split())
    numbers = sorted({given} if isinstance(given, int) else set(given))
    return ",".join(_ranges(numbers))


def _ranges(numbers: list[int]) -> Iterable[str]:
    """Join neighbours, so that a set of all minutes is as short as `0-59`."""
    start = 0
    for end, number in enumerate(numbers):
        if end + 1 < len(numbers) and numbers[end + 1] == number + 1:
            continue
        yield str(number) if start == end else f"{numbers[start]}-{number}"
        start = end + 1


def _named(field: str) -> str:
    """Cut names to their first three letters, which is all that Celery reads of `monday` or `january`."""
    return NAME.sub(lambda name: name.group()[:3], field.lower())


def _own_zone(schedule: Any) -> str | None:
    """Return the zone that a crontab was given; None if it uses the app's."""
    zone = vars(schedule).get("tz")
    if zone is None and schedule.nowfun is not None:
        zone = schedule.nowfun().tzinfo
    return None if zone is None else zone_name(zone)
