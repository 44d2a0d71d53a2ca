"""An entry in the tables of django-celery-beat and its two relatives: they have the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from celery.schedules import crontab

from celery_pgbeat.declare.call import plain
from celery_pgbeat.declare.timing import Timing, every
from celery_pgbeat.declare.when import own_timing
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.moving.answers import Answer, Refused, Taken

CLEANUP = "celery.backend_cleanup"
CRON_FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
LONGEST_SUBJECT = 1_000  # characters of a free text
CUT = f"its description is cut to {LONGEST_SUBJECT:,} characters"


def answer_of(
    row: Mapping[str, Any], kind: str | None, schedule: Mapping[str, Any], now: datetime, *, ends: bool
) -> Answer:
    """Return what becomes of a row.

    Args:
        row: of the table of periodic tasks.
        kind: of its schedule: interval, crontab, solar or clocked; None if it has none.
        schedule: the row of that kind's table; empty if it is missing.
        now: the time.
        ends: whether the peer stops sending at `expires`. If not, it goes on, and workers drop the messages.
    """
    name, start, expires = row["name"], row.get("start_time"), row.get("expires")
    reason = _refusal(row, kind, schedule, now)
    if kind is None or reason is not None:
        return Refused(name, str(reason))
    timing = timing_of(kind, schedule)
    columns, changes = _call(row)
    columns |= {
        "start_at": start,
        "end_at": expires,
        "max_runs": 1 if row.get("one_off") and kind != "clocked" else None,
    }
    if kind == "interval":
        columns["anchor"] = _anchor(row, now)
    if expires is not None and not ends:
        changes.append(f"nothing is sent after {expires.isoformat()}: the peer goes on, and workers drop the messages")
    given = {column: value for column, value in columns.items() if value is not None}
    last = row.get("last_run_at")
    return Taken(name, row["task"], timing, given, tuple(changes), not row["enabled"], row["id"], last)


def timing_of(kind: str, schedule: Mapping[str, Any]) -> Timing:
    """Return the times of a row in a table of schedules.

    Raises:
        InvalidSchedule: a value is wrong.
        ValueError: Celery itself refuses it.
    """
    if kind == "interval":
        period, number = str(schedule["period"]), schedule["every"]
        return every(**({"seconds": number / 1_000_000} if period == "microseconds" else {period: number}))
    if kind == "crontab":
        return crontab_timing({field: schedule[field] for field in CRON_FIELDS}, schedule.get("timezone"))
    if kind == "solar":
        place = (float(schedule[column]) for column in ("latitude", "longitude"))
        return own_timing(" ".join(["solar:", schedule["event"], *(f"{degrees:.6f}" for degrees in place)]))
    return own_timing(schedule["clocked_time"])


def crontab_timing(fields: Mapping[str, Any], zone: Any = None) -> Timing:
    """Return the times of the fields of Celery's crontab, which Celery itself checks first.

    Raises:
        ValueError: Celery refuses a field.
    """
    try:
        return Timing(own_timing(crontab(**fields)).text, str(zone) if zone else None)
    except InvalidSchedule:
        raise
    except Exception as error:
        raise ValueError(f"Celery refuses its crontab: {error}") from error


def _refusal(row: Mapping[str, Any], kind: str | None, schedule: Mapping[str, Any], now: datetime) -> str | None:
    """Return why a row never runs again, or not as a row of ours; None if it may."""
    start, expires = row.get("start_time"), row.get("expires")
    reasons = (
        (
            row["task"] == CLEANUP and row["name"] == CLEANUP,
            "it is Celery's own: our beats declare it where the result backend needs it",
        ),
        (kind is None, "it has no schedule: the peer never runs it"),
        (not schedule, f"its {kind} schedule is missing"),
        (row["enabled"] and row.get("one_off") and row["total_run_count"], "it is a one-off that has had its run"),
        (kind == "clocked" and _past(schedule.get("clocked_time"), now), "its only time has passed"),
        (_past(expires, now), f"it has expired, at {expires}"),
        (_past(expires, start), f"it expires at {expires}, before its start at {start}"),
    )
    return next((reason for applies, reason in reasons if applies), None)


def _past(instant: datetime | None, limit: datetime | None) -> bool:
    return instant is not None and limit is not None and instant <= limit


def _call(row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    columns: dict[str, Any] = {
        "args": _json(row, "args", "[]"),
        "kwargs": _json(row, "kwargs", "{}"),
        "queue": row.get("queue") or None,
        "priority": row.get("priority"),
    }
    headers = _json(row, "headers", "{}")
    expires = row.get("expires") or row.get("expire_seconds")
    options = {
        "exchange": row.get("exchange") or None,
        "routing_key": row.get("routing_key") or None,
        "headers": headers or None,
        "expires": expires or None,
    }
    columns["options"] = {name: value for name, value in options.items() if value is not None}
    description = " ".join((row.get("description") or "").split())
    columns["subject"] = description[:LONGEST_SUBJECT] or None
    return columns, [CUT] if len(description) > LONGEST_SUBJECT else []


def _json(row: Mapping[str, Any], column: str, empty: str) -> Any:
    try:
        return plain(row.get(column) or empty)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{column} is not JSON ({error}): the peer cannot send it") from None


def _anchor(row: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return from where an interval is counted: the last run. Before its first run it is counted from its start."""
    start, last = row.get("start_time"), row.get("last_run_at")
    if start is not None and (start > now or last is None):
        return None
    anchor: datetime | None = last or row.get("date_changed")
    return anchor
