"""Rows as Python sees them: a field for each public column, durations as timedelta, instants aware in UTC.

`PeriodicTask` is in `celery_pgbeat/columns.py`, `Job` in `celery_pgbeat/columns_of_job.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any, Literal, TypeVar
from uuid import UUID

from celery_pgbeat.choices import BackfillMode, BackfillState
from celery_pgbeat.columns import JSON_COLUMNS, PeriodicTask
from celery_pgbeat.columns_of_job import UUID_COLUMNS, Job
from celery_pgbeat.declare.call import plain
from celery_pgbeat.texts.plain_json import Unreadable


@dataclass(frozen=True, slots=True)
class Work:
    """A task for people that a person has or may pick up.

    Attributes:
        id: of the job.
        periodic_task: the name of the periodic task.
        subject: what that is for.
        task: the Celery task, if it has one.
        args: positional arguments; None if they are sensitive.
        kwargs: keyword arguments; None if they are sensitive.
        scheduled_for: the instant of the occurrence.
        state: `created`: it can be picked up; `running`: the caller's person has it.
        target: who may pick it up; None for anybody.
        due_by: when it is overdue.
        overdue: whether that instant has passed.
        created_at: when it was decided.
        picked_up_at: when a person picked it up first.
        stop_request: `cancel` if a later occurrence waits for its end (`overlap = 'cancel_other'`).
    """

    id: UUID
    periodic_task: str
    subject: str | None
    task: str | None
    args: list[Any] | None
    kwargs: dict[str, Any] | None
    scheduled_for: datetime
    state: Literal["created", "running"]
    target: list[str] | None
    due_by: datetime | None
    overdue: bool
    created_at: datetime
    picked_up_at: datetime | None
    stop_request: str | None


@dataclass(frozen=True, slots=True)
class RetriedJob:
    """The job that `retry_job` has made.

    Attributes:
        job: its id, which is the Celery task id.
        periodic_task: the name of its row.
        arguments_of: `job`: it has the arguments of the job that is retried. `periodic task`: those that the row has
            now, because the history keeps none of that job.
    """

    job: UUID
    periodic_task: str
    arguments_of: Literal["job", "periodic task"]


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One run in the future.

    Attributes:
        name: of the periodic task.
        next_run_at: when it is due, with jitter, outside the blackout windows.
        planned_for: the occurrence behind it, its job's `scheduled_for`; None if SQL set `next_run_at` itself.
        note: in words, what moved it or what a change of the clocks does to it; only in the runs of one row.
        after: the tasks after which it runs, if it is only expected: the row has no schedule, and is due when these
            have ended. None for a run that a beat has planned or will plan.
    """

    name: str
    next_run_at: datetime
    planned_for: datetime | None
    note: str | None = None
    after: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Backfill:
    """One row of `pgbeat.backfill`, as it was when it was read.

    Attributes:
        id: what `cancel_backfill` takes.
        periodic_task: the row whose occurrences are filled in.
        since: the first instant of the range, inclusive.
        until: the last instant of the range, inclusive.
        mode: `missing`, `failed` or `all`.
        max_active: at most this number of its jobs are under way at once.
        state: `running`; `finished`, once every occurrence is decided; `cancelled`.
        reached: the last occurrence that is decided; None if no beat has begun.
        total: how many occurrences the range has; None if no beat has begun. For solar events over more than ten years
            it is the number of days, until all are decided.
        submitted: how many jobs it has made.
        skipped: how many occurrences needed no job, by its mode.
        active: how many of its jobs are not final.
        problem: why it could not go on; None if a person cancelled it.
        created_at: when it was made.
        created_by: the database's user who made it.
        finished_at: when the last occurrence was decided, or it was cancelled.
    """

    id: UUID
    periodic_task: str
    since: datetime
    until: datetime
    mode: BackfillMode
    max_active: int
    state: BackfillState
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
    """What a backfill would do if it began now; nothing was written.

    Attributes:
        periodic_task: the row whose occurrences would be filled in.
        since: the first instant of the range, inclusive.
        until: the last instant of the range, inclusive.
        mode: `missing`, `failed` or `all`.
        max_active: at most this number of its jobs would be under way at once.
        total: how many occurrences the range has.
        to_submit: how many jobs it would make.
        skipped: how many occurrences would need no job, by the mode.
        undecided: how many the beats have still to decide as ordinary runs; the backfill waits for that.
        first: the first occurrences that would be sent, at most ten.
        history_since: when the oldest job that is still known was made; an older occurrence counts as missing. None: no
            job is known.
    """

    periodic_task: str
    since: datetime
    until: datetime
    mode: BackfillMode
    max_active: int
    total: int
    to_submit: int
    skipped: int
    undecided: int
    first: tuple[datetime, ...]
    history_since: datetime | None


Shape = TypeVar("Shape", PeriodicTask, Job, Work, Upcoming, Backfill)


def read_row(shape: type[Shape], row: Mapping[str, Any]) -> Shape:
    """Return a database row as one of these classes; the row may come from any driver."""
    return shape(**{field.name: _value(field.name, row[field.name]) for field in fields(shape) if field.name in row})


def _value(column: str, value: Any) -> Any:
    if isinstance(value, Unreadable):
        return value
    if column in JSON_COLUMNS and value is not None:
        # Some drivers parse JSON and some leave it as text; Celery's own types are read from the text.
        return plain(value if isinstance(value, str) else json.dumps(value))
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc)
    if column in UUID_COLUMNS and value is not None:
        return UUID(str(value))
    return value
