"""The statements of the beats: one method for each, of the same name. Here are those of the tick and of its jobs.

What they return is in beat_results.py.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, cast

from celery_pgbeat.planning import (
    Decision,
    Due,
    Planned,
    Postponed,
    Rules,
    Skipped,
    Unplanned,
)
from celery_pgbeat.postgres.arrays import records_text
from celery_pgbeat.postgres.backfill_queries import BackfillQueries
from celery_pgbeat.postgres.beat_results import (
    AtOnce,
    Confirmed,
    Judged,
    Marked,
    PendingWork,
    Recovered,
    Submitted,
    as_due,
    as_history,
    as_marked,
    as_uuid,
    in_utc,
    planning_values,
    records,
)
from celery_pgbeat.postgres.beat_statements import stored_error
from celery_pgbeat.postgres.upkeep_queries import UpkeepQueries

__all__ = [
    "AtOnce",
    "BeatQueries",
    "Confirmed",
    "Judged",
    "Marked",
    "PendingWork",
    "Recovered",
    "Submitted",
    "as_history",
]

MOST_BUFFERED = 1000  # jobs of one periodic task that wait for another one under `buffer_all`
SKIPPED = [field.name for field in fields(Skipped)]


class BeatQueries(UpkeepQueries, BackfillQueries):
    """The beats' statements, on behalf of one beat."""

    def look(
        self, lazy_names: Sequence[str] = (), closed_queues: Collection[str] = (), closed_tasks: Collection[str] = ()
    ) -> PendingWork:
        """Look, without a lock or a write, whether there is anything to do, and when the next row is due.

        Rows of `closed_queues`, and rows without a queue of `closed_tasks`, are not to be marked.
        """
        (row,) = self._run(
            "look",
            lease=self.lease,
            lazy_names=list(lazy_names),
            closed_queues=list(closed_queues),
            closed_tasks=list(closed_tasks),
        )
        return PendingWork(**next(records([row])))

    def mark(
        self,
        batch: int,
        lazy_names: Sequence[str] = (),
        fresh: int = 0,
        closed_queues: Collection[str] = (),
        closed_tasks: Collection[str] = (),
    ) -> list[Due]:
        """Mark up to `batch` due periodic tasks for this beat, those due longest first.

        `fresh` of them are those due last. For the closed ones see `look`.
        """
        rows = self._run(
            "mark",
            direct=True,
            beat=self.beat,
            lease=self.lease,
            batch=batch,
            fresh=fresh,
            lazy_names=list(lazy_names),
            closed_queues=list(closed_queues),
            closed_tasks=list(closed_tasks),
        )
        return as_due(rows)

    def mark_or_submit(
        self,
        batch: int,
        rules: Rules,
        full_acts_as: str = "full",
        lazy_names: Sequence[str] = (),
        fresh: int = 0,
        closed_queues: Collection[str] = (),
        closed_tasks: Collection[str] = (),
    ) -> Marked:
        """Mark likewise, but submit at once those of which nothing is to be decided. `full_acts_as`: see `submit`."""
        deadline = rules.pickup_deadline
        rows = self._run(
            "mark_or_submit",
            direct=True,
            beat=self.beat,
            lease=self.lease,
            batch=batch,
            fresh=fresh,
            lazy_names=list(lazy_names),
            on_time=rules.on_time.total_seconds(),
            pickup_deadline=None if deadline is None else deadline.total_seconds(),
            full_acts_as=full_acts_as,
            closed_queues=list(closed_queues),
            closed_tasks=list(closed_tasks),
        )
        return as_marked(rows)

    def unplanned(self, batch: int, after: str = "") -> list[Unplanned]:
        """Read up to `batch` periodic tasks whose next run is still to be planned, those after a name."""
        rows = self._run("unplanned", batch=batch, after=after)
        return [Unplanned(*values) for values in planning_values(Unplanned, rows)]

    def plan(self, planned: Sequence[Planned], default_timezone: str) -> list[tuple[str, datetime | None, str | None]]:
        """Plan: store next runs (or problems) of rows whose definition is still the one that was planned."""
        rows = self._run(
            "plan",
            names=[answer.name for answer in planned],
            revisions=[answer.revision for answer in planned],
            planned_froms=[answer.planned_from for answer in planned],
            next_run_ats=[answer.next_run_at for answer in planned],
            planned_fors=[answer.planned_for for answer in planned],
            problems=[answer.problem for answer in planned],
            pickup_deadlines=[answer.pickup_deadline.total_seconds() for answer in planned],
            replaced=[answer.replaces for answer in planned],
            timezone=default_timezone,
            version=self._version,
        )
        return [(row[0], in_utc(row[1]), row[2]) for row in rows]

    def report_problem(self, problems: Sequence[tuple[Due, str]]) -> list[str]:
        """Write down why marked periodic tasks cannot be planned."""
        rows = self._run(
            "report_problem",
            beat=self.beat,
            names=[due.name for due, _ in problems],
            marked_ats=[due.marked_at for due, _ in problems],
            problems=[problem for _, problem in problems],
            version=self._version,
        )
        return [row[0] for row in rows]

    def submit(
        self,
        decisions: Sequence[Decision],
        default_timezone: str,
        may_judge: bool,
        resending: bool,
        full_acts_as: str = "full",
        shadow: bool = False,
    ) -> list[Submitted]:
        """Submit the decided occurrences: write the jobs and move the next runs on, fenced by this very mark.

        `full_acts_as` is what `tracking = full` comes to where no worker reports: `result` or `send`. With `shadow`
        each occurrence that would get a job is skipped.
        """
        rows = self._run(
            "submit",
            direct=True,
            beat=self.beat,
            timezone=default_timezone,
            may_judge=may_judge,
            resending=resending,
            full_acts_as=full_acts_as,
            most_buffered=MOST_BUFFERED,
            shadow=shadow,
            decisions=_as_records(decisions),
        )
        return [
            Submitted(name, made, waits, reason, as_uuid(blocked_by), as_uuid(lost))
            for name, made, waits, reason, blocked_by, lost in rows
        ]

    def postpone(self, postponed: Sequence[Postponed]) -> list[str]:
        """Postpone due periodic tasks to the end of their blackout windows, fenced by this very mark."""
        rows = self._run(
            "postpone",
            beat=self.beat,
            names=[answer.row.name for answer in postponed],
            marked_ats=[answer.row.marked_at for answer in postponed],
            due_ats=[answer.row.next_run_at for answer in postponed],
            next_run_ats=[answer.next_run_at for answer in postponed],
            planned_fors=[answer.planned_for for answer in postponed],
        )
        return [row[0] for row in rows]

    def promote_buffered(self, names: Iterable[str] | None = None) -> int:
        """Promote the buffered jobs that no other job blocks, of these periodic tasks or of all; returns how many."""
        (row,) = self._run("promote_buffered", names=None if names is None else list(names))
        return int(row[0])

    def grant_slots(self, batch: int) -> int:
        """Give the free slots of groups to jobs that wait for one, up to `batch` in each; return how many got one."""
        (row,) = self._run("grant_slots", batch=batch)
        return int(row[0])

    def sync_group_pauses(self) -> list[str]:
        """Pause or resume rows that joined their group at the moment at which it was paused or resumed."""
        return [row[0] for row in self._run("sync_group_pauses")]

    def still_marked(self, names: Sequence[str]) -> set[str]:
        """Return which of these rows still have this beat's mark: a submit skipped them, because they were locked."""
        return {row[0] for row in self._run("still_marked", beat=self.beat, names=list(names))}

    def confirm(self, sent: Sequence[tuple[uuid.UUID, float]]) -> Confirmed:
        """Confirm that the broker took these jobs' messages; each with the seconds until it may start."""
        delays = {str(job): float(delay) for job, delay in sent if delay}
        jobs = [job for job, _ in sent]
        ((count, some, locked),) = self._run(
            "confirm", direct=True, beat=self.beat, jobs=jobs, count=len(jobs), delays=json.dumps(delays)
        )
        return Confirmed(set(jobs) if count == len(jobs) else _as_uuids(some), _as_uuids(locked))

    def give_back(self, jobs: Iterable[uuid.UUID] | None = None, late: bool = False) -> int:
        """Give unsent jobs back, so that any other beat sends them at once; without a list, all that it has marked.

        `late`, when their lease is over, only those that this beat has not marked anew.
        """
        ids = None if jobs is None else [str(job) for job in jobs]
        return len(self._run("give_back", beat=self.beat, lease=self.lease, jobs=ids, late=late))

    def delay_jobs(self, delayed: Sequence[tuple[uuid.UUID, float, str]]) -> int:
        """Delay unsent jobs of this beat, each for some seconds and with what the broker said."""
        return len(
            self._run(
                "delay_jobs",
                beat=self.beat,
                jobs=[str(job) for job, _, _ in delayed],
                delays=[seconds for _, seconds, _ in delayed],
                errors=[stored_error(error) for _, _, error in delayed],
            )
        )

    def end_delays(self) -> int:
        """End the delays of the jobs for whose queue the broker took no message."""
        return len(self._run("end_delays"))

    def unmark(self, names: Iterable[str] | None = None) -> int:
        """Take this beat's marks off the rows it has not submitted; without a list, off all due rows."""
        return len(self._run("unmark", beat=self.beat, names=None if names is None else list(names)))

    def recover(self, batch: int, on_time: timedelta, lazy_names: Sequence[str] = ()) -> list[Recovered]:
        """Take over up to `batch` jobs that no beat is sending."""
        rows = self._run(
            "recover",
            beat=self.beat,
            lease=self.lease,
            batch=batch,
            on_time=on_time.total_seconds(),
            lazy_names=list(lazy_names),
        )
        return [
            Recovered(**{**record, "id": as_uuid(record["id"]), "windows": json.loads(record["windows"] or "{}")})
            for record in records(rows)
        ]

    def postpone_jobs(self, postponed: Sequence[tuple[uuid.UUID, datetime]]) -> int:
        """Postpone jobs that this beat has taken over and may not send yet, each until an instant."""
        jobs, untils = [str(job) for job, _ in postponed], [until for _, until in postponed]
        return len(self._run("postpone_jobs", beat=self.beat, jobs=jobs, untils=untils))

    def recheck(self, batch: int) -> int:
        """Set `check_at` to the deadline, for up to `batch` jobs whose `check_at` has passed and that are in time."""
        return len(self._run("recheck", batch=batch, lease=self.lease))

    def recheck_future_marks(self) -> int:
        """Find the unsent jobs that were marked before the clock was set back."""
        return len(self._run("recheck_future_marks", lease=self.lease))

    def judge(self, batch: int, resending: bool) -> list[Judged]:
        """Decide about jobs that have been silent past busy_until: send again, run again, or lost."""
        rows = self._run("judge", batch=batch, resending=resending)
        return [Judged(cast(uuid.UUID, as_uuid(row[0])), row[1], row[2]) for row in rows]

    def unreported(self, batch: int, names: Sequence[str] = ()) -> list[uuid.UUID]:
        """Read the jobs whose end no worker reports, and that block others, or are past busy_until."""
        return [cast(uuid.UUID, as_uuid(row[0])) for row in self._run("unreported", batch=batch, names=list(names))]

    def lower_tracking(self, acts_as: str) -> int:
        """Stop waiting for reports that no worker sends: jobs at the broker are tracked as `full` acts here."""
        (row,) = self._run("lower_tracking", acts_as=acts_as)
        return int(row[0])

    def finish_by_result(self, found: Sequence[tuple[uuid.UUID, str]]) -> int:
        """Finish jobs that no worker reports, each in the final state that the result backend has."""
        jobs, states = [str(job) for job, _ in found], [state for _, state in found]
        return len(self._run("finish_by_result", jobs=jobs, states=states))

    def finish_eager(self, ended: Sequence[tuple[uuid.UUID, str, str | None]]) -> int:
        """Finish pending jobs of this beat whose tasks have run in the beat itself, each in its final state."""
        return len(
            self._run(
                "finish_eager",
                beat=self.beat,
                jobs=[str(job) for job, _, _ in ended],
                states=[state for _, state, _ in ended],
                errors=[error and error[:500].replace("\0", "") for _, _, error in ended],
            )
        )

    def refuse(self, refused: Sequence[tuple[uuid.UUID, str]]) -> list[uuid.UUID]:
        """Record that messages could not be made, or that a broker in reach refused them; returns the jobs now lost."""
        rows = self._run(
            "refuse",
            beat=self.beat,
            jobs=[str(job) for job, _ in refused],
            errors=[stored_error(error) for _, error in refused],
        )
        return [cast(uuid.UUID, as_uuid(row[0])) for row in rows if row[1]]

    def skip(self, jobs: Sequence[uuid.UUID], reason: str) -> int:
        """Record as skipped, for this reason, jobs that this beat has marked: they are never sent."""
        return len(self._run("skip", beat=self.beat, jobs=[str(job) for job in jobs], reason=reason))


def _as_records(decisions: Sequence[Decision]) -> str:
    """Return decisions as an array of the type `decision`."""
    records = []
    for decision in decisions:
        row, skipped, *others = decision
        range_skipped = [getattr(skipped, name, None) for name in SKIPPED]
        records.append((row.name, row.marked_at, row.next_run_at, *range_skipped, *others))
    return records_text(records)


def _as_uuids(ids: Sequence[Any] | None) -> set[uuid.UUID]:
    return {uuid.UUID(str(one)) for one in ids or ()}
