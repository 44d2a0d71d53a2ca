"""Rows as Python sees them: a field for each public column, spans as timedelta, instants aware in UTC.

`PeriodicTask` is in `celery_pgbeat/columns.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any, TypeVar
from uuid import UUID

from celery_pgbeat.columns import JSON_COLUMNS, PeriodicTask
from celery_pgbeat.declare.call import plain
from celery_pgbeat.plain_json import Unreadable

UUID_COLUMNS = ("id", "blocked_by")


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
    sent_at: datetime | None
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


@dataclass(frozen=True, slots=True)
class Backfill:
    """One row of `pgbeat.backfill`, as it was when it was read.

    Attributes:
        id: what names it.
        periodic_task: the row whose occurrences are filled in.
        since: the first instant of the range, inclusive.
        until: the last instant of the range, inclusive.
        mode: `missing`, `failed` or `all`.
        max_active: at most so many of its jobs are under way at once.
        state: `running`; `finished`, once every occurrence is decided; `cancelled`.
        reached: up to where it is decided; None where no beat has begun.
        total: how many occurrences the range has; None where no beat has begun. Of solar events over more than ten
            years it is how many days, until all are decided.
        submitted: how many jobs it has made.
        skipped: how many occurrences needed none, by its mode.
        active: how many of its jobs are not final.
        problem: why it could not go on, where it was not cancelled by a person.
        created_at: when it was asked for.
        created_by: by whom, the database's user.
        finished_at: when the last occurrence was decided, or it was cancelled.
    """

    id: UUID
    periodic_task: str
    since: datetime
    until: datetime
    mode: str
    max_active: int
    state: str
    reached: datetime | None
    total: int | None
    submitted: int
    skipped: int
    active: int
    problem: str | None
    created_at: datetime
    created_by: str
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class BackfillPreview:
    """What a backfill would do if it were begun now; nothing was written.

    Attributes:
        periodic_task: the row whose occurrences would be filled in.
        since: the first instant of the range, inclusive.
        until: the last instant of the range, inclusive.
        mode: `missing`, `failed` or `all`.
        max_active: at most so many of its jobs would be under way at once.
        total: how many occurrences the range has.
        to_submit: how many jobs it would make.
        skipped: how many occurrences would need none, by the mode.
        undecided: how many the ordinary way has still to decide: their turn comes after that.
        first: the first occurrences that would go out, at most ten.
        history_since: when the oldest job was made that is still known; what is older counts as missing. None: none is.
    """

    periodic_task: str
    since: datetime
    until: datetime
    mode: str
    max_active: int
    total: int
    to_submit: int
    skipped: int
    undecided: int
    first: tuple[datetime, ...]
    history_since: datetime | None


Shape = TypeVar("Shape", PeriodicTask, Job, Upcoming, Backfill)


def read_row(shape: type[Shape], row: Mapping[str, Any]) -> Shape:
    """Return a database row as one of these shapes, whichever driver has read it."""
    return shape(**{field.name: _value(field.name, row[field.name]) for field in fields(shape) if field.name in row})


def _value(column: str, value: Any) -> Any:
    if isinstance(value, Unreadable):
        return value
    if column in JSON_COLUMNS:
        # Some drivers parse JSON and some leave it as text; Celery's own types want the text.
        return plain(value if isinstance(value, str) else json.dumps(value))
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc)
    if column in UUID_COLUMNS and value is not None:
        return UUID(str(value))
    return value
