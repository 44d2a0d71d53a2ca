"""What the beats say to Postgres: one method a statement, the same verb.

Instants come back aware in UTC, whatever zone the session shows them in.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from sqlalchemy.engine import Row

from celery_pgbeat.planning import Decision, Definition, Due, Planned
from celery_pgbeat.postgres.database import Database


@dataclass(frozen=True, slots=True)
class View:
    """What a look saw: the database's time, what there is to do, and when the next row will be due."""

    now: datetime
    due: bool
    next_run_at: datetime | None
    unplanned: bool
    unsent: bool
    lapsed: bool
    resumes: bool


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of one decision: `made` a job, or the job `blocked_by` was in the way; `lost` gave way first."""

    name: str
    made: bool
    blocked_by: uuid.UUID | None
    lost: uuid.UUID | None


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about a silent job: `resend`, `rerun` or `lost`."""

    id: uuid.UUID
    periodic_task: str
    verdict: str


class Store:
    """The beats' statements, on behalf of one beat."""

    def __init__(self, database: Database, beat: str, lease: timedelta) -> None:
        self.database = database
        self.beat = beat
        self.lease = lease.total_seconds()

    def look(self, lazy_names: Sequence[str] = ()) -> View:
        """Look, without a lock or a write, whether there is anything to do, and when the next row is due."""
        (row,) = self._run("look", lease=self.lease, lazy_names=list(lazy_names))
        return View(**_record(row))

    def mark(self, batch: int, lazy_names: Sequence[str] = ()) -> list[Due]:
        """Mark up to `batch` due periodic tasks for this beat, those due longest first."""
        rows = self._run("mark", beat=self.beat, lease=self.lease, batch=batch, lazy_names=list(lazy_names))
        return sorted((Due(**_record(row)) for row in rows), key=lambda due: (due.next_run_at, due.name))

    def unplanned(self, batch: int, after: str = "") -> list[Definition]:
        """Read up to `batch` periodic tasks whose next run is still to be planned, those behind a name."""
        return [Definition(**_record(row)) for row in self._run("unplanned", batch=batch, after=after)]

    def plan(self, planned: Sequence[Planned], default_timezone: str) -> list[tuple[str, datetime | None, str | None]]:
        """Store the planned next runs (or problems) of rows whose definition is still the one that was planned."""
        rows = self._run(
            "plan",
            names=[answer.name for answer in planned],
            revisions=[answer.revision for answer in planned],
            planned_froms=[answer.planned_from for answer in planned],
            next_run_ats=[answer.next_run_at for answer in planned],
            planned_fors=[answer.next_run_at for answer in planned],
            problems=[answer.problem for answer in planned],
            pickup_deadlines=[answer.pickup_deadline.total_seconds() for answer in planned],
            timezone=default_timezone,
        )
        return [(row[0], _utc(row[1]), row[2]) for row in rows]

    def report_problem(self, problems: Sequence[tuple[Due, str]]) -> list[str]:
        """Write down why marked periodic tasks cannot be planned."""
        rows = self._run(
            "report_problem",
            beat=self.beat,
            names=[due.name for due, _ in problems],
            marked_ats=[due.marked_at for due, _ in problems],
            problems=[problem for _, problem in problems],
        )
        return [row[0] for row in rows]

    def submit(
        self, decisions: Sequence[Decision], default_timezone: str, judging: bool, resending: bool
    ) -> list[Submitted]:
        """Submit the decided occurrences: write the jobs and move the next runs on, fenced by this very mark."""
        rows = self._run(
            "submit",
            beat=self.beat,
            timezone=default_timezone,
            judging=judging,
            resending=resending,
            names=[decision.row.name for decision in decisions],
            marked_ats=[decision.row.marked_at for decision in decisions],
            due_ats=[decision.row.next_run_at for decision in decisions],
            jobs=[None if decision.job is None else str(decision.job) for decision in decisions],
            scheduled_fors=[decision.scheduled_for for decision in decisions],
            origins=[decision.origin for decision in decisions],
            passed_firsts=[decision.passed.first if decision.passed else None for decision in decisions],
            passed_lasts=[decision.passed.last if decision.passed else None for decision in decisions],
            passed_counts=[decision.passed.count if decision.passed else 0 for decision in decisions],
            passed_reasons=[decision.passed.reason if decision.passed else None for decision in decisions],
            next_run_ats=[decision.next_run_at for decision in decisions],
            planned_fors=[decision.next_run_at for decision in decisions],
            decided_untils=[decision.decided_until for decision in decisions],
            pickup_deadlines=[decision.pickup_deadline.total_seconds() for decision in decisions],
        )
        return [Submitted(row[0], row[1], _uuid(row[2]), _uuid(row[3])) for row in rows]

    def still_marked(self, names: Sequence[str]) -> set[str]:
        """Tell which of these rows still bear this beat's mark: a submit stepped over them."""
        return {row[0] for row in self._run("still_marked", beat=self.beat, names=list(names))}

    def confirm(self, sent: Sequence[tuple[uuid.UUID, float]]) -> set[uuid.UUID]:
        """Confirm that the broker took these jobs' messages; each with the seconds until it may start."""
        rows = self._run(
            "confirm", beat=self.beat, jobs=[str(job) for job, _ in sent], delays=[float(delay) for _, delay in sent]
        )
        return {cast(uuid.UUID, _uuid(row[0])) for row in rows}

    def give_back(self, jobs: Iterable[uuid.UUID] | None = None) -> int:
        """Give unsent jobs back, so that any other beat sends them at once; without a list, all that are held."""
        ids = None if jobs is None else [str(job) for job in jobs]
        return len(self._run("give_back", beat=self.beat, jobs=ids))

    def unmark(self, names: Iterable[str] | None = None) -> int:
        """Take this beat's marks off the rows it has not submitted; without a list, off all due rows."""
        return len(self._run("unmark", beat=self.beat, names=None if names is None else list(names)))

    def recover(self, batch: int, on_time: timedelta, lazy_names: Sequence[str] = ()) -> list[Recovered]:
        """Take over up to `batch` jobs that nobody is sending."""
        rows = self._run(
            "recover",
            beat=self.beat,
            lease=self.lease,
            batch=batch,
            on_time=on_time.total_seconds(),
            lazy_names=list(lazy_names),
        )
        return [Recovered(**{**_record(row), "id": _uuid(row.id)}) for row in rows]

    def judge(self, batch: int, resending: bool) -> list[Verdict]:
        """Decide about jobs that have been silent past busy_until: send again, run again, or lost."""
        rows = self._run("judge", batch=batch, resending=resending)
        return [Verdict(cast(uuid.UUID, _uuid(row[0])), row[1], row[2]) for row in rows]

    def refuse(self, refused: Sequence[tuple[uuid.UUID, str]]) -> list[uuid.UUID]:
        """Record that the broker, though reachable, refused these jobs' messages; returns those now lost."""
        rows = self._run(
            "refuse",
            beat=self.beat,
            jobs=[str(job) for job, _ in refused],
            errors=[error[:500].replace("\0", "") for _, error in refused],
        )
        return [cast(uuid.UUID, _uuid(row[0])) for row in rows if row[1]]

    def skip(self, jobs: Sequence[uuid.UUID], reason: str) -> int:
        """Record held jobs as skipped for this reason: they are never sent."""
        return len(self._run("skip", beat=self.beat, jobs=[str(job) for job in jobs], reason=reason))

    def resume_due(self) -> list[str]:
        """Resume the periodic tasks whose pause is over."""
        return [row[0] for row in self._run("resume_due")]

    def announce(self, hostname: str, pid: int, version: str) -> None:
        """Announce this beat, or say that it is still alive."""
        self._run("announce", node=self.beat, role="beat", hostname=hostname, pid=pid, version=version, tracking=False)

    def sign_off(self, nodes: Sequence[str]) -> None:
        """Take nodes that have ended off the list."""
        self._run("sign_off", nodes=list(nodes))

    def peers(self, hostname: str) -> list[str]:
        """List the beats of this host: a starting beat looks which of them are dead."""
        return [row[0] for row in self._run("peers", hostname=hostname, beat=self.beat)]

    def free(self, beats: Sequence[str]) -> tuple[int, int]:
        """Free what dead beats left: their marks and their unsent jobs."""
        (row,) = self._run("free", beats=list(beats))
        return row[0], row[1]

    def forget_nodes(self) -> bool:
        """Forget nodes that nobody has heard of for a day; says whether workers announce our tracker."""
        (row,) = self._run("forget_nodes")
        return bool(row[0])

    def make_days(self) -> int:
        """Make the days of the history that are missing; returns how many it made."""
        (row,) = self._run("make_days")
        return int(row[0])

    def prune(self, retention: timedelta) -> int:
        """Drop the days of the history that are older than the retention; returns how many it dropped."""
        (row,) = self._run("prune", retention=retention.total_seconds())
        return int(row[0])

    def _run(self, name: str, **parameters: Any) -> Sequence[Any]:
        return self.database.run(name, **parameters)


def _record(row: Row[Any]) -> dict[str, Any]:
    return {name: _utc(value) if isinstance(value, datetime) else value for name, value in row._mapping.items()}


def _utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(timezone.utc)


def _uuid(value: Any) -> uuid.UUID | None:
    return value if value is None or isinstance(value, uuid.UUID) else uuid.UUID(str(value))
