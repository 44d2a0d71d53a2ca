"""RedBeat: its entries in Redis, without RedBeat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from celery_pgbeat.declare.timing import Timing, interval_timing, relative_timing
from celery_pgbeat.errors import InvalidSource
from celery_pgbeat.moving.answers import Answer, Refused, Taken, answered
from celery_pgbeat.moving.kind import DRIFT, NIGHTS, OVERDUE, Kind, Request
from celery_pgbeat.moving.kinds.celery_tables import CLEANUP, CRON_FIELDS, crontab_timing
from celery_pgbeat.moving.kinds.recurrence import recurrence_text
from celery_pgbeat.moving.readers.redis_keys import Hash, hashes
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.texts.safe_text import type_of

PREFIX = "redbeat:"
OF_CODE = (
    "the app's code declares it (beat_schedule): our beats write this row from there. To own it as a row, import it "
    "from beat-schedule, and remove it from the code"
)
ZONE = "A crontab keeps the app's time zone, as RedBeat drops its own. Name the app with -A, and the rows get its zone."


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the entries."""
    conf = {} if request.app is None else request.app.conf
    url = request.source or conf.get("redbeat_redis_url") or conf.get("broker_url")
    if not url:
        raise InvalidSource("name RedBeat's Redis, such as redis://localhost:6379/0, or the app with -A")
    prefix = request.key_prefix or conf.get("redbeat_key_prefix") or PREFIX
    for stored in hashes(url, prefix):
        yield answered(stored.name, partial(answer_of, stored, request.now))


def answer_of(stored: Hash, now: datetime) -> Answer:
    """Return what becomes of an entry."""
    if stored.name == CLEANUP:
        return Refused(stored.name, "it is Celery's own: our beats declare it where the result backend needs it")
    if stored.of_code:
        return Refused(stored.name, OF_CODE)
    if stored.definition is None:
        return Refused(stored.name, "its hash has no definition: RedBeat drops such an entry")
    given = json.loads(stored.definition, object_hook=_value)
    last = json.loads(stored.meta or "{}", object_hook=_value).get("last_run_at")
    timing, columns = _times(given.get("schedule"), last)
    for column in ("args", "kwargs", "options"):
        columns |= {column: given[column]} if given.get(column) else {}
    if "end_at" in columns and columns["end_at"] <= now:
        return Refused(stored.name, f"its last time was at {columns['end_at'].isoformat()}")
    name = given.get("name", stored.name)
    if not isinstance(name, str):
        raise ValueError(f"its definition has {type_of(name)} as the name")
    paused = not given.get("enabled", True)
    return Taken(name, given.get("task"), timing, columns, paused=paused, last_run_at=last)


def _times(schedule: Any, last: datetime | None) -> tuple[Timing, dict[str, Any]]:
    if not isinstance(schedule, Mapping):
        raise ValueError("its schedule is none that RedBeat writes")
    kind = schedule.get("__type__")
    if kind == "interval":
        if schedule.get("relative"):
            return relative_timing(schedule["every"]), {}
        return interval_timing(schedule["every"]), {} if last is None else {"anchor": last}
    if kind == "crontab":
        return crontab_timing({field: schedule[field] for field in CRON_FIELDS}), {}
    if kind == "rrule":
        return Timing(recurrence_text(schedule)), {}
    raise ValueError(f"its schedule is of the kind {kind!r}, which RedBeat itself does not write")


def _value(given: dict[str, Any]) -> Any:
    """Read an instant; leave everything else as it is."""
    if given.get("__type__") != "datetime":
        return given
    fields = {name: value for name, value in given.items() if name not in ("__type__", "timezone")}
    zone = given.get("timezone", "UTC")
    offset = ZoneInfo(zone_named(zone).name) if isinstance(zone, str) else timezone(timedelta(seconds=zone))
    return datetime(**fields, tzinfo=offset)


REDBEAT = Kind("redbeat", read, (DRIFT, OVERDUE, NIGHTS, ZONE))
