"""What the statements of the beats return, and how it is read.

All instants are aware, in UTC, whatever the time zone of the session.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, timezone
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy.engine import Row

from celery_pgbeat.planning import BackfillRow, Due, History, PlanningRow, Unplanned
from celery_pgbeat.postgres.durations import duration_of, with_durations

UTC = timezone.utc
WINDOWS = [field.name for field in fields(PlanningRow)].index("windows")
# At which places of a row that planning reads there are durations, for each shape of row.
DURATIONS: dict[type[PlanningRow], list[int]] = {
    shape: [
        place for place, one in enumerate(fields(shape)) if one.name in ("jitter", "catchup_window", "max_run_time")
    ]
    for shape in (Unplanned, Due, BackfillRow)
}


@dataclass(frozen=True, slots=True)
class PendingWork:
    """What `look` found: the database's time, what there is to do, and when the next row will be due."""

    now: datetime
    due: bool
    next_run_at: datetime | None
    unplanned: bool
    unsent: bool
    slots_to_grant: bool
    unreported: bool
    past_deadline: bool
    in_time: bool
    resumes: bool
    failing: bool
    backfills: bool
    downstream: bool


class AtOnce(NamedTuple):  # a beat makes thousands a second
    """A row that its mark has submitted at once, and its job: what the message needs.

    Attributes:
        tracking: that of the job: what `full` acts as, where the row has `full`.
        next_run_at: when the job was due.
        planned_for: its occurrence.
    """

    name: str
    schedule: str
    timezone: str
    task: str
    args: str
    kwargs: str
    queue: str | None
    priority: int | None
    options: str
    sensitive: bool
    tracking: str
    catchup_window: timedelta | None
    max_run_time: timedelta | None
    next_run_at: datetime
    planned_for: datetime
    marked_at: datetime
    job: uuid.UUID


@dataclass(frozen=True, slots=True)
class Marked:
    """What became of the rows that were due: those that this beat has to decide about, and those with a job."""

    due: list[Due]
    at_once: list[AtOnce]

    def __len__(self) -> int:
        return len(self.due) + len(self.at_once)

    @property
    def marked_at(self) -> datetime | None:
        """The instant of the mark; None if nothing was due."""
        return None if self._first is None else self._first.marked_at

    @property
    def late_by(self) -> timedelta:
        """How late the first of them is; 0 if nothing was due."""
        return timedelta() if self._first is None else self._first.marked_at - self._first.next_run_at

    @property
    def _first(self) -> Due | AtOnce | None:
        first: list[Due | AtOnce] = [*self.due[:1], *self.at_once[:1]]
        return first[0] if first else None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of one decision.

    Attributes:
        made: a job was created.
        waits: it is not to be sent now: it waits for another job, for other tasks, for a slot or for a person.
        reason: why the occurrence is skipped, as the history has it.
        blocked_by: the job for which it is skipped, if there is one.
        lost: a job past its deadline that was given up first.
    """

    name: str
    made: bool
    waits: bool = False
    reason: str | None = None
    blocked_by: uuid.UUID | None = None
    lost: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class Recovered:
    """A job taken over; with a `reason` it was recorded as skipped instead."""

    id: uuid.UUID
    periodic_task: str
    scheduled_for: datetime
    origin: str
    task: str
    queue: str | None
    message: str | None
    max_run_time: timedelta | None
    run: int
    reason: str | None
    # Where its row decides whether it is still sent: when it was due, and how much later it may be sent.
    due_at: datetime | None = None
    catchup_window: timedelta | None = None
    # Likewise the blackout windows, with the zone and the named windows that they need.
    blackout: Sequence[str] | None = None
    timezone: str | None = None
    windows: Mapping[str, tuple[Sequence[str], str | None]] = field(default_factory=dict)
    sends: int = 1  # how often a beat has begun to send it, this time included
    tracking: str = "full"


@dataclass(frozen=True, slots=True)
class Judged:
    """What was decided about a silent job: `resend`, `rerun` or `lost`."""

    id: uuid.UUID
    periodic_task: str
    verdict: str


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that has waited with the broker for long, and what decides where its message went."""

    id: uuid.UUID
    queue: str | None
    task: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The jobs that are `sent` now, and those whose rows another transaction locks: confirm these again."""

    jobs: set[uuid.UUID]
    locked: set[uuid.UUID]


def as_history(rows: Sequence[Any]) -> History:
    """Return what `backfill_history.sql` has read, by either driver."""
    known_until = in_utc(rows[0][2]) if rows else None
    return History({row[0].astimezone(UTC): row[1] for row in rows}, known_until)


def records(rows: Sequence[Row[Any]]) -> Iterator[dict[str, Any]]:
    """Iterate over rows by column, their durations as timedelta."""
    names = rows[0]._fields if rows else ()
    for row in rows:
        yield with_durations(zip(names, _values(row), strict=True))


_COLUMNS = [*(one.name for one in fields(Due)), "job"]  # of mark_or_submit.sql
_JOB = _COLUMNS.index("job")
_AT_ONCE = itemgetter(*(_COLUMNS.index(name) for name in AtOnce._fields))


def as_due(rows: Sequence[Any]) -> list[Due]:
    """Return rows that were marked, those due longest first."""
    due = (Due(*values) for values in planning_values(Due, rows))
    return sorted(due, key=lambda row: (row.next_run_at, row.name))


def as_marked(rows: Sequence[Any]) -> Marked:
    """Return what became of rows that were due, of each kind those due longest first."""
    at_once = (_at_once(row) for row in rows if row[_JOB] is not None)
    return Marked(
        as_due([row[:_JOB] for row in rows if row[_JOB] is None]),
        sorted(at_once, key=lambda row: (row.next_run_at, row.name)),
    )


def _at_once(row: Any) -> AtOnce:
    values: list[Any] = [*_AT_ONCE(row)]
    *_, catchup_window, max_run_time, next_run_at, planned_for, marked_at, job = values
    values[-6:] = (
        None if catchup_window is None else duration_of(catchup_window),
        None if max_run_time is None else duration_of(max_run_time),
        next_run_at if next_run_at.tzinfo is UTC else next_run_at.astimezone(UTC),
        planned_for if planned_for.tzinfo is UTC else planned_for.astimezone(UTC),
        marked_at if marked_at.tzinfo is UTC else marked_at.astimezone(UTC),
        job if type(job) is uuid.UUID else uuid.UUID(str(job)),
    )
    return AtOnce(*values)


def planning_values(shape: type[PlanningRow], rows: Sequence[Row[Any]]) -> Iterator[list[Any]]:
    """Iterate over the values that planning reads of rows, in the order of its fields."""
    durations = DURATIONS[shape]
    for row in rows:
        values = _values(row)
        windows = values[WINDOWS]
        values[WINDOWS] = json.loads(windows) if windows else {}
        for place in durations:
            if values[place] is not None:
                values[place] = duration_of(values[place])
        yield values


def _values(row: Row[Any]) -> list[Any]:
    # By its type, and only where there is anything to do: a thousand rows have thirty thousand values.
    return [value.astimezone(UTC) if type(value) is datetime and value.tzinfo is not UTC else value for value in row]


def in_utc(value: datetime | None) -> datetime | None:
    """Return an instant in UTC."""
    return None if value is None else value.astimezone(UTC)


def as_uuid(value: Any) -> uuid.UUID | None:
    """Return an id, which one of the drivers returns as text."""
    return value if value is None or isinstance(value, uuid.UUID) else uuid.UUID(str(value))
