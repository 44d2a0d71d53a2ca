"""One of our rows as an entry that Celery's schedulers know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from celery.schedules import crontab

from celery_pgbeat.api.exchange import EMPTY
from celery_pgbeat.declare.definition import record_of
from celery_pgbeat.declare.lazy import PLACEHOLDER
from celery_pgbeat.declare.when import own_timing
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.moving.answers import Refused
from celery_pgbeat.schedules import Schedule, parse, shortest_gap
from celery_pgbeat.texts.plain_json import Unreadable

CRON_FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
COMPARED = 400  # occurrences in which a crontab of Celery's has to equal the row's schedule
CARRIED = {"name", "task", "args", "kwargs", "queue", "priority", "options", "schedule", "timezone", "anchor"}
BOUNDS = ("start_at", "end_at", "max_runs")
AS_THERE = {**EMPTY, "overlap": "allow"}  # all of Celery's schedulers send a run whether the last one has ended or not
WITHOUT_EFFECT = {"submitter", "subject", "managed_by", "sensitive", "dst"}  # dst: the occurrences are compared


@dataclass(frozen=True, slots=True)
class Crontab:
    """The fields of Celery's crontab, by name, and the zone that they are read in."""

    fields: Mapping[str, str]
    timezone: str


@dataclass(frozen=True, slots=True)
class Interval:
    """Elapsed time."""

    length: timedelta


@dataclass(frozen=True, slots=True)
class Solar:
    """An event of the sun at a place."""

    event: str
    latitude: str
    longitude: str


@dataclass(frozen=True, slots=True)
class Clocked:
    """One instant."""

    at: datetime


Times = Crontab | Interval | Solar | Clocked


@dataclass(frozen=True, slots=True)
class Entry:
    """A row, as far as Celery's schedulers can have it.

    Attributes:
        options: those of `apply_async`, with queue and priority.
        last_run_at: such that its next run is the row's, and nothing is overdue.
        next_run_at: that run, if it is to be; else now.
        bounds: `start_at`, `end_at` and `max_runs`, as far as they are set.
        lost: the columns that have no counterpart.
    """

    name: str
    task: str
    times: Times
    args: list[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    enabled: bool
    last_run_at: datetime
    next_run_at: datetime
    bounds: Mapping[str, Any]
    description: str
    lost: tuple[str, ...]


def entry_of(row: Mapping[str, Any], now: datetime, app_timezone: str) -> Entry | Refused:
    """Return what a row becomes.

    Args:
        row: of `pgbeat.periodic_task`.
        now: the time.
        app_timezone: the zone of rows without one.
    """
    name, record = row["name"], record_of(row)
    reason = _refusal(record, now)
    if reason is not None:
        return Refused(name, reason)
    zone = record["timezone"] or app_timezone
    try:
        schedule = parse(record["schedule"], zone, name=name, dst=record["dst"], anchor=_anchor(row))
        times = _times(schedule, now)
    except (InvalidSchedule, ValueError) as error:
        return Refused(name, str(error))
    own = {column: record[column] for column in ("queue", "priority") if record[column] is not None}
    last = _last_run(row, schedule, now) if isinstance(times, Interval) else now
    kept = CARRIED | WITHOUT_EFFECT | set(BOUNDS)
    return Entry(
        name,
        record["task"],
        times,
        record["args"],
        record["kwargs"],
        {**record["options"], **own},
        row["enabled"],
        last,
        schedule.next(now) or now,
        {column: row[column] for column in BOUNDS if row[column] is not None},
        record["subject"] or "",
        tuple(column for column in AS_THERE if column not in kept and record[column] != AS_THERE[column]),
    )


def _anchor(row: Mapping[str, Any]) -> datetime:
    """Return from where an interval is counted; a row that was not given that counts from when it was made."""
    anchor: datetime = row["anchor"] or row["start_at"] or row["created_at"]
    return anchor


def _last_run(row: Mapping[str, Any], schedule: Schedule, now: datetime) -> datetime:
    """Return the occurrence before the next one, as a beat has planned that; else by the schedule."""
    following = row["planned_for"] or schedule.next(now)
    return (following and schedule.previous(following)) or now


def _refusal(record: Mapping[str, Any], now: datetime) -> str | None:
    unreadable = next((column for column, value in record.items() if isinstance(value, Unreadable)), None)
    end = record["end_at"]
    reasons = (
        (record["kind"] == "human", "it is a task for people"),
        (record["schedule"] is None, "it has no schedule"),
        (bool(record["after"]), "it runs after other tasks"),
        (unreadable is not None, f"{unreadable} cannot be read"),
        (_is_lazy(record), "a BeatLazyFunc makes its arguments for each message, and only code can declare one"),
        (end is not None and datetime.fromisoformat(end) <= now, f"it ended at {end}"),
    )
    return next((reason for applies, reason in reasons if applies), None)


def _is_lazy(record: Mapping[str, Any]) -> bool:
    args, kwargs = record["args"], record["kwargs"]
    return not isinstance(args, str) and not isinstance(kwargs, str) and PLACEHOLDER in [*args, *kwargs.values()]


def _times(schedule: Schedule, now: datetime) -> Times:
    """Return the times of a schedule.

    Raises:
        ValueError: none of Celery's schedules has them.
    """
    if schedule.kind == "interval" and schedule.text.startswith("every"):
        length = shortest_gap(schedule)
        assert length is not None
        return Interval(length)
    if schedule.kind == "solar":
        return Solar(*schedule.text.removeprefix("solar:").split())
    if schedule.kind == "once":
        at = schedule.next(now)
        if at is None:
            raise ValueError("its only time has passed")
        return Clocked(at)
    if schedule.kind in ("cron", "crontab"):
        return Crontab(_cron_fields(schedule, now), schedule.timezone)
    raise ValueError(f"Celery has no schedule with the times of {schedule.text!r}")


def _cron_fields(schedule: Schedule, now: datetime) -> dict[str, str]:
    """Return the fields of the crontab of Celery's that has the same times.

    Raises:
        ValueError: none has.
    """
    texts = schedule.text.removeprefix("crontab:").split()
    fields = dict(zip(CRON_FIELDS, texts, strict=False))
    try:
        same = len(texts) == len(CRON_FIELDS) and _occurrences(schedule, now) == _occurrences(
            parse(own_timing(crontab(**fields)).text, schedule.timezone), now
        )
    except Exception as error:
        raise ValueError(f"Celery's crontab refuses {schedule.text!r}: {error}") from error
    if not same:
        raise ValueError(f"Celery's crontab has other times than {schedule.text!r}")
    return fields


def _occurrences(schedule: Schedule, now: datetime) -> list[datetime]:
    return list(islice(schedule.occurrences(now), COMPARED))
