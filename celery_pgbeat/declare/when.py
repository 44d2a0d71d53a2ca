"""Turns a schedule, in whatever form it is declared, into a `Timing`."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from celery_pgbeat.declare.celery_schedules import replaced_by, timing_of_celery
from celery_pgbeat.declare.timing import Timing, interval_timing, stripped
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.texts.safe_text import type_of

HOOK = "to_pgbeat"  # the method of a schedule class of one's own


def timing_of(when: Any, app_timezone: str = "UTC") -> Timing:
    """Return the Timing of a schedule, in whatever form it is declared.

    Args:
        when: a Timing, text, a timedelta, a number of seconds, a date or datetime (once), Celery's `crontab`,
            `schedule` or `solar`, or an object with a method `to_pgbeat()` that returns one of these.
        app_timezone: the app's zone, for a schedule without one.

    Raises:
        InvalidSchedule: it cannot be stored as text.

    Example:
        >>> timing_of(90).text
        'every 1m30s'
    """
    timing = own_timing(when)
    zone, anchor = timing.timezone or app_timezone, timing.anchor
    if anchor is not None and anchor.tzinfo is None:
        anchor = anchor.replace(tzinfo=ZoneInfo(zone_named(zone).name))
    return Timing(timing.text, zone, anchor)


def own_timing(when: Any) -> Timing:
    """Return the Timing of a schedule, with a zone and an anchor only if it has some of its own.

    Raises:
        InvalidSchedule: it cannot be stored as text.
    """
    if has_hook(when):
        return _asked(when)
    if isinstance(when, Timing):
        return Timing(stripped(when.text), when.timezone, when.anchor)
    if isinstance(when, str):
        return Timing(stripped(when))
    if isinstance(when, (timedelta, int, float)):
        return interval_timing(when)
    if isinstance(when, date):
        return _once(when)
    timing = timing_of_celery(when)
    if timing is None:
        raise _refused(when)
    return timing


def has_hook(when: Any) -> bool:
    """Return whether a schedule is an object that says itself what it is; its class is asked, not the object."""
    return callable(getattr(type(when), HOOK, None))


def _asked(when: Any) -> Timing:
    """Return what the schedule's own method says. An error in it must refuse this entry alone."""
    name = f"{type(when).__qualname__}.{HOOK}()"
    try:
        said = when.to_pgbeat()
    except Exception as error:
        raise InvalidSchedule(repr(when), "schedule", f"{name} raised {type(error).__name__}: {error}") from error
    if said is None or has_hook(said):
        raise InvalidSchedule(
            repr(when),
            "schedule",
            f"{name} returned {type_of(said)}: return text, cron(...), every(...) or a timedelta",
        )
    return own_timing(said)


def _once(instant: date) -> Timing:
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        return Timing(instant.isoformat())
    return Timing(instant.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z")


def _refused(when: Any) -> InvalidSchedule:
    kind = type(when)
    if any(parent.__module__ == "celery.schedules" for parent in kind.__mro__):
        reason = (
            f"the class {kind.__module__}.{kind.__qualname__} decides in Python when it is due "
            f"({', '.join(replaced_by(kind)) or 'its own methods'}), and a row can only hold text: give it a method "
            f"{HOOK}() that returns text, cron(...) or every(...), or write it as cron, an interval, ISO 8601, a "
            f"calendar event or an RRULE. If it reads a database, schedule the task as often as it reads, and let the "
            f"task look"
        )
    else:
        reason = (
            f"{type_of(when)} is not a schedule: use cron(...), every(...), text, a timedelta, seconds, a datetime, "
            f"Celery's crontab, schedule or solar, or a class with a method {HOOK}()"
        )
    return InvalidSchedule(repr(when), "schedule", reason)
