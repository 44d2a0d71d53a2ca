"""Rows as Python sees them: a field for each public column, spans as timedelta, instants aware in UTC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar
from uuid import UUID

from celery_pgbeat.declare.call import plain

JSON_COLUMNS = ("args", "kwargs", "options")
UUID_COLUMNS = ("id", "blocked_by")


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """One row of `pgbeat.periodic_task`, as it was when it was read."""

    name: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    queue: str | None
    priority: int | None
    options: dict[str, Any]
    schedule: str | None
    timezone: str | None
    anchor: datetime | None
    dst: str
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None
    run_count: int
    jitter: timedelta | None
    overlap: str
    catchup: str
    catchup_window: timedelta | None
    catchup_limit: int | None
    min_gap: timedelta | None
    max_run_time: timedelta | None
    blackout: list[str] | None
    blackout_action: str
    submitter: str | None
    subject: str | None
    enabled: bool
    pause_reason: str | None
    paused_by: str | None
    paused_until: datetime | None
    on_lost: str
    tracking: str
    next_run_at: datetime | None
    planned_for: datetime | None
    last_run_at: datetime | None
    marked_by: str | None
    marked_at: datetime | None
    managed_by: str
    problem: str | None
    revision: int
    planned_revision: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Job:
    """One row of `pgbeat.job`, as it was when it was read; `id` is the Celery task id."""

    id: UUID
    periodic_task: str
    scheduled_for: datetime
    last_scheduled_for: datetime | None
    occurrences: int
    origin: str
    state: str
    reason: str | None
    blocked_by: UUID | None
    task: str
    queue: str | None
    created_at: datetime
    submitted_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    sends: int
    beat: str | None
    worker: str | None
    error: str | None
    busy_until: datetime | None


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One run that is to come.

    Attributes:
        name: of the periodic task.
        next_run_at: when it is due, with jitter, outside the blackout windows.
        planned_for: the occurrence behind it, its job's `scheduled_for`; None where SQL has set `next_run_at` itself.
        note: in words, what moved it or what a change of the clocks does to it; only where one row was asked for.
    """

    name: str
    next_run_at: datetime
    planned_for: datetime | None
    note: str | None = None


Shape = TypeVar("Shape", PeriodicTask, Job, Upcoming)


def read_row(shape: type[Shape], row: Mapping[str, Any]) -> Shape:
    """Return a database row as a PeriodicTask, a Job or an Upcoming, whichever driver has read it."""
    return shape(**{field.name: _value(field.name, row[field.name]) for field in fields(shape) if field.name in row})


def _value(column: str, value: Any) -> Any:
    if column in JSON_COLUMNS:
        # Some drivers parse JSON and some leave it as text; Celery's own types want the text.
        return plain(value if isinstance(value, str) else json.dumps(value))
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc)
    if column in UUID_COLUMNS and value is not None:
        return UUID(str(value))
    return value
