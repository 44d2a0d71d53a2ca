"""Entries as a script for `psql`, which writes django-celery-beat's tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.declare.options import read_instant
from celery_pgbeat.moving.answers import Refused
from celery_pgbeat.moving.back.entry import Clocked, Crontab, Entry, Interval, Solar

PREFIX = "django_celery_beat_"
OPTIONS = ("exchange", "routing_key")  # with a column of their own
KNOWN = {*OPTIONS, "queue", "priority", "headers", "expires"}
PERIODS = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
KINDS = ("interval", "crontab", "solar", "clocked")
# Only solar events have a unique index.
SAME = {"solar": " on conflict (event, latitude, longitude) do update set event = excluded.event"}
TELL = (
    "insert into django_celery_beat_periodictasks (ident, last_update) values (1, clock_timestamp()) "
    "on conflict (ident) do update set last_update = excluded.last_update;"
)
MICROSECOND = timedelta(microseconds=1)


def refusal(entry: Entry, app_timezone: str) -> Refused | None:  # noqa: ARG001  the others need the zone
    """Return why django-celery-beat cannot have an entry; None if it can."""
    others = sorted(entry.options.keys() - KNOWN)
    runs = entry.bounds.get("max_runs")
    expires, end = entry.options.get("expires"), entry.bounds.get("end_at")
    other_end = isinstance(expires, str) and (end is None or read_instant(expires) != end)
    reasons = (
        (bool(others), f"it has the options {', '.join(others)}, and django-celery-beat drops them"),
        (runs not in (None, 1), f"it runs {runs} times, and django-celery-beat knows only one time or any number"),
        (isinstance(expires, float), f"its messages expire after {expires} s, and only whole seconds have a column"),
        (other_end, "its messages expire at another instant than it ends, and there is one column for both"),
        (isinstance(expires, int) and end is not None, "it has an end_at and expires, and there only one can be set"),
    )
    return next((Refused(entry.name, reason) for applies, reason in reasons if applies), None)


def lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Iterate over the lines of the script: one transaction, which tells the scheduler at its end."""
    yield "begin;"
    for entry in entries:
        kind, schedule = _schedule(entry)
        row = _row(entry)
        columns = [*row, *(f"{other}_id" for other in KINDS)]
        values = [*map(_literal, row.values()), *("made.id" if other == kind else "null" for other in KINDS)]
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
        yield f"with made as (insert into {PREFIX}{kind}schedule {_values(schedule)}{SAME.get(kind, '')} returning id)"
        yield f"insert into {PREFIX}periodictask ({', '.join(columns)})"
        yield f"select {', '.join(values)} from made on conflict (name) do update set {changes};"
    yield TELL
    yield "commit;"


def _row(entry: Entry) -> dict[str, Any]:
    options = entry.options
    return {
        "name": entry.name,
        "task": entry.task,
        "args": json.dumps(entry.args),
        "kwargs": json.dumps(entry.kwargs),
        "queue": options.get("queue"),
        "exchange": options.get("exchange"),
        "routing_key": options.get("routing_key"),
        "priority": options.get("priority"),
        "headers": json.dumps(options.get("headers") or {}),
        "expires": entry.bounds.get("end_at"),
        "expire_seconds": options.get("expires") if isinstance(options.get("expires"), int) else None,
        "one_off": isinstance(entry.times, Clocked) or "max_runs" in entry.bounds,
        "start_time": entry.bounds.get("start_at"),
        "enabled": entry.enabled,
        "last_run_at": entry.last_run_at if entry.enabled else None,
        "total_run_count": 0,
        "date_changed": entry.last_run_at,
        "description": entry.description,
    }


def _schedule(entry: Entry) -> tuple[str, dict[str, Any]]:
    times = entry.times
    if isinstance(times, Crontab):
        return "crontab", {**times.fields, "timezone": times.timezone}
    if isinstance(times, Interval):
        seconds, rest = divmod(times.length, timedelta(seconds=1))
        if rest:
            return "interval", {"every": times.length // MICROSECOND, "period": "microseconds"}
        period, unit = next(found for found in PERIODS if seconds % found[1] == 0)
        return "interval", {"every": seconds // unit, "period": period}
    if isinstance(times, Solar):
        return "solar", {"event": times.event, "latitude": float(times.latitude), "longitude": float(times.longitude)}
    return "clocked", {"clocked_time": times.at}


def _values(row: Mapping[str, Any]) -> str:
    return f"({', '.join(row)}) values ({', '.join(map(_literal, row.values()))})"


def _literal(value: Any) -> str:
    """Return a value as a literal of SQL: standard strings, in which a backslash is one."""
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
