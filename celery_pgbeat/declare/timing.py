"""A schedule as the text, zone and anchor of a row: `cron` and `every`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any, overload

from celery_pgbeat.declare.cron_fields import CronField, crontab_text, is_field
from celery_pgbeat.errors import InvalidSchedule, InvalidSetting
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.durations import spoken
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.texts.safe_text import in_short, type_of

# Celery's `relative` intervals are counted from here: midnight on the wall clock of the row's zone. It is a Monday, so
# that weeks begin on Mondays; and recent, because a zone may have had another offset in 1970.
RELATIVE_FROM = datetime(2024, 1, 1)  # noqa: DTZ001
DAY = timedelta(days=1)
TOO_LONG = "an interval must not be longer than 100 years"


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


@overload
def cron(expression: str, timezone: str | tzinfo | None = None) -> Timing: ...


@overload
def cron(
    *,
    minute: CronField,
    hour: CronField = "*",
    day_of_week: CronField = "*",
    day_of_month: CronField = "*",
    month_of_year: CronField = "*",
    timezone: str | tzinfo | None = None,
) -> Timing: ...


def cron(
    expression: str | None = None,
    timezone: str | tzinfo | None = None,
    *,
    minute: CronField | None = None,
    hour: CronField | None = None,
    day_of_week: CronField | None = None,
    day_of_month: CronField | None = None,
    month_of_year: CronField | None = None,
) -> Timing:
    """Declare a cron schedule: an expression, or the fields of Celery's `crontab` by name.

    Fields by name have the meaning that they have in `crontab`: a day must match both `day_of_week` and
    `day_of_month`, and an omitted field is `*`. Only `minute` must be given: `crontab(hour=3)` runs 60 times.

    Args:
        expression: five fields, or six with the seconds first, or seven with the year last, such as `*/5 * * * *`,
            `0 9 * * mon-fri`; or `@daily`.
        timezone: the schedule's zone, an IANA name or a ZoneInfo; None for the app's.
        minute: a number, text such as `*/15`, or several numbers; as are the others.
        hour: 0 to 23.
        day_of_week: 0 or `sun` to 6 or `sat`.
        day_of_month: 1 to 31.
        month_of_year: 1 or `jan` to 12 or `dec`.

    Raises:
        InvalidSchedule: the expression, a field or the zone is wrong; names the field and the value.

    Example:
        >>> cron("0 3 * * *", timezone="Europe/Berlin")
        Timing(text='0 3 * * *', timezone='Europe/Berlin', anchor=None)
        >>> cron(minute="*/5", day_of_week="mon-fri").text
        'crontab: */5 * * * mon-fri'
    """
    fields = {
        "minute": minute,
        "hour": hour,
        "day_of_week": day_of_week,
        "day_of_month": day_of_month,
        "month_of_year": month_of_year,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    if given:
        text = _crontab_of(expression, given)
    elif expression is None:
        raise InvalidSchedule("cron()", "schedule", "give an expression such as '0 3 * * *', or minute=0, hour=3")
    else:
        text = stripped(expression)
    zone = zone_name(timezone) if isinstance(timezone, tzinfo) else timezone
    if parse(text, zone or "UTC").kind not in ("cron", "crontab"):
        raise InvalidSchedule(text, "schedule", "not a cron expression of five, six or seven fields")
    return Timing(text, zone)


def _crontab_of(expression: Any, given: Mapping[str, Any]) -> str:
    shown = _call("cron", expression, given)
    if expression is not None:
        raise InvalidSchedule(shown, "schedule", "give an expression or fields, not both")
    if "minute" not in given:
        raise InvalidSchedule(
            shown,
            "minute",
            "minute is missing, and Celery's crontab would run in every minute then: give minute=0 for one run an "
            "hour, or minute='*' for one each minute",
        )
    for name, value in given.items():
        if not is_field(value):
            raise InvalidSchedule(shown, name, f"{name} is {in_short(value)}, not a number, text or several numbers")
    return crontab_text(**given)


@overload
def every(interval: str | timedelta | float) -> Timing: ...


@overload
def every(
    *, weeks: float = ..., days: float = ..., hours: float = ..., minutes: float = ..., seconds: float = ...
) -> Timing: ...


def every(
    interval: str | timedelta | float | None = None,
    *,
    weeks: float | None = None,
    days: float | None = None,
    hours: float | None = None,
    minutes: float | None = None,
    seconds: float | None = None,
) -> Timing:
    """Declare an interval. It is counted from the instant at which it is set; later runs do not drift.

    Args:
        interval: text such as `30s`, `5 minutes`, `1h30m`, `PT5M`; a timedelta; or a number of seconds.
        weeks: in place of `interval`, its length in units, as of a timedelta; they add up.
        days: of 24 hours each.
        hours: see `weeks`.
        minutes: see `weeks`.
        seconds: see `weeks`.

    Raises:
        InvalidSchedule: it is not an interval, or not longer than zero.

    Example:
        >>> every("1h30m") == every(hours=1, minutes=30)
        True
    """
    units = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
    given = {unit: number for unit, number in units.items() if number is not None}
    if given:
        return interval_timing(_length_of(interval, given))
    if interval is None:
        raise InvalidSchedule("every()", "interval", "give text such as '5m', or units such as minutes=5")
    if isinstance(interval, (timedelta, int, float)):
        return interval_timing(interval)
    text = stripped(interval)
    text = text if text[:1] in ("P", "p") or text.lower().startswith("every ") else f"every {text}"
    if parse(text).kind != "interval":
        raise InvalidSchedule(text, "interval", "not an interval such as 30s, 5 minutes or PT1H")
    return Timing(text)


def _length_of(interval: Any, given: Mapping[str, Any]) -> timedelta:
    shown = _call("every", interval, given)
    if interval is not None:
        raise InvalidSchedule(shown, "interval", "give an interval or units, not both")
    for unit, number in given.items():
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise InvalidSchedule(shown, unit, f"{unit} is {in_short(number)}, not a number")
    try:
        return timedelta(**given)
    except OverflowError:
        raise InvalidSchedule(shown, "interval", TOO_LONG) from None


def _call(name: str, first: Any, given: Mapping[str, Any]) -> str:
    """Return a call as it was written, for an error message."""
    arguments = [] if first is None else [in_short(first)]
    return f"{name}({', '.join([*arguments, *(f'{key}={in_short(value)}' for key, value in given.items())])})"


def relative_timing(length: timedelta | float) -> Timing:
    """Return an interval as Celery's `relative` means it: whole days, hours and minutes of the zone's wall clock.

    Whole days are days of the calendar, from midnight to midnight; everything shorter is elapsed time.

    Raises:
        InvalidSchedule: it is not an interval, or not longer than zero.
    """
    text = interval_timing(length).text
    duration = length if isinstance(length, timedelta) else timedelta(seconds=length)
    return Timing(text if duration % DAY else f"P{duration // DAY}D", anchor=RELATIVE_FROM)


def app_timezone(app: Any) -> str:
    """Return the IANA name of a Celery app's time zone.

    Raises:
        InvalidSetting: Celery's setting `timezone` names no zone, or a zone without a name.

    Example:
        >>> from celery import Celery
        >>> app_timezone(Celery(set_as_current=False))
        'UTC'
    """
    named = app.conf.timezone
    try:
        if named and isinstance(named, str):
            zone_named(named)  # its refusal suggests a similar name, zoneinfo's does not
        return zone_name(app.timezone)
    except InvalidSchedule as error:
        raise InvalidSetting(f"Celery's setting timezone: {error}") from None
    except (LookupError, ValueError, OSError) as error:
        raise InvalidSetting(f"Celery's setting timezone: {named!r}: {error.args[0]}") from None


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


def stripped(text: Any) -> str:
    """Return the text of a schedule.

    Raises:
        InvalidSchedule: it is no text.
    """
    if not isinstance(text, str):
        raise InvalidSchedule(repr(text), "schedule", f"{type_of(text)}, not text")
    return text.strip()


def interval_timing(length: timedelta | float) -> Timing:
    """Return an interval of a length; a number is in seconds.

    Raises:
        InvalidSchedule: it is not an interval, or not longer than zero.
    """
    if isinstance(length, bool) or (isinstance(length, (int, float)) and not math.isfinite(length)):
        raise InvalidSchedule(repr(length), "interval", "not an interval: give a number of seconds or a timedelta")
    try:
        duration = length if isinstance(length, timedelta) else timedelta(seconds=length)
    except OverflowError:
        raise InvalidSchedule(repr(length), "interval", TOO_LONG) from None
    if duration <= timedelta(0):
        raise InvalidSchedule(str(length), "interval", "an interval must be longer than 0")
    text = f"every {spoken(duration)}"
    parse(text)
    return Timing(text)
