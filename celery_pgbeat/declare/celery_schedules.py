"""Celery's schedule objects as a `Timing`. They are recognised by name, so that Celery need not be imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from celery_pgbeat.declare.cron_fields import crontab_text
from celery_pgbeat.declare.timing import Timing, interval_timing, relative_timing, zone_name
from celery_pgbeat.errors import InvalidSchedule


def timing_of_celery(schedule: Any) -> Timing | None:
    """Return the Timing of a schedule of Celery's; None if it is none, or may be due at other times.

    A subclass counts as its parent if it replaces nothing that decides when it is due.

    Raises:
        InvalidSchedule: it has no interval, or a zone without a name.
    """
    parent = _parent_of(type(schedule))
    if parent is None or replaced_by(type(schedule)):
        return None
    return CELERY[_name_of(parent)](schedule)


def replaced_by(kind: type) -> list[str]:
    """Return which attributes of Celery's schedule a subclass replaces, in alphabetical order.

    What it adds under other names Celery never uses. Of the names with underscores on both sides only those count that
    stand between Celery and every attribute: a constructor and a repr decide nothing.
    """
    parent = _parent_of(kind) or next(one for one in kind.__mro__ if one.__module__ in ("celery.schedules", "builtins"))
    above = kind.__mro__[: kind.__mro__.index(parent)]
    return sorted({name for one in above for name in vars(one) if _decides(name, parent)})


def _decides(name: str, parent: type) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return name in ("__getattr__", "__getattribute__")
    return hasattr(parent, name) or name in FIELDS


def _parent_of(kind: type) -> type | None:
    return next((parent for parent in kind.__mro__ if _name_of(parent) in CELERY), None)


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _crontab(schedule: Any) -> Timing:
    text = crontab_text(
        schedule._orig_minute,
        schedule._orig_hour,
        schedule._orig_day_of_week,
        schedule._orig_day_of_month,
        schedule._orig_month_of_year,
    )
    return Timing(text, _own_zone(schedule))


def _interval(schedule: Any) -> Timing:
    if schedule.run_every is None:
        raise InvalidSchedule(repr(schedule), "interval", "run_every is missing")
    return relative_timing(schedule.run_every) if schedule.relative else interval_timing(schedule.run_every)


def _solar(schedule: Any) -> Timing:
    return Timing(f"solar: {schedule.event} {schedule.lat} {schedule.lon}")


def _own_zone(schedule: Any) -> str | None:
    """Return the zone that a crontab was given; None if it uses the app's."""
    zone = vars(schedule).get("tz")
    if zone is None and schedule.nowfun is not None:
        zone = schedule.nowfun().tzinfo
    return None if zone is None else zone_name(zone)


CELERY: Mapping[str, Callable[[Any], Timing]] = {
    "celery.schedules.crontab": _crontab,
    "celery.schedules.schedule": _interval,
    "celery.schedules.solar": _solar,
    "django_celery_beat.tzcrontab.TzAwareCrontab": _crontab,
}
# What the constructors of these classes set, and their methods read.
FIELDS = frozenset(
    (
        *("minute", "hour", "day_of_week", "day_of_month", "month_of_year", "run_every", "relative", "nowfun"),
        *("event", "lat", "lon", "cal", "method", "use_center"),
    )
)
