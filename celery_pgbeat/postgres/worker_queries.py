"""The statements of the workers: one method for each, of the same name.

Each later report of a start (it finished, it will be retried, it still runs) carries the token of that start. It
changes nothing once the row belongs to another start.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from sqlalchemy.exc import IntegrityError

from celery_pgbeat import __version__
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.postgres.arrays import array_text
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.process.node import NodeId


@dataclass(frozen=True, slots=True)
class MessageCopy:
    """One copy of a job's message: which run of the job it asks for, which attempt of that run, and of which task.

    The task is None where the message does not name one.
    """

    job: uuid.UUID
    run: int
    attempt: int
    task: str | None = field(default=None, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Start(MessageCopy):
    """A copy that a worker tries to start, or has started: known from all others by its token."""

    token: uuid.UUID
    worker: str


@dataclass(frozen=True, slots=True)
class Finish:
    """How a start ended: in which final state, and with what error."""

    start: Start
    state: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Unstarted:
    """The end of a job whose message a worker dropped before its start: in which final state, and why.

    The copy is a Start if a heartbeat may have reported it as running.
    """

    copy: MessageCopy
    state: str
    worker: str
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class JobState:
    """What is known of a job: its state, in which run and attempt, at which worker, and whether it is final.

    `spaced`: it has a min_gap, so `start_spaced` decides about its start. `stop_request`: cancel or terminate.
    `untracked`: its tracking is `send`, so nothing decides about its start.
    """

    state: str
    run: int
    attempt: int
    worker: str | None
    final: bool
    task: str
    spaced: bool = False
    stop_request: str | None = None
    untracked: bool = False


@dataclass(frozen=True, slots=True)
class MinGapViolation:
    """A start came within the min_gap of its periodic task: the job is recorded as skipped."""

    periodic_task: str
    min_gap: timedelta


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request that a start which is under way ends: by itself (cancel) or by force (terminate)."""

    token: uuid.UUID
    kind: Literal["cancel", "terminate"]


class WorkerQueries:
    """The workers' statements."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def start(self, start: Start, dead_after: timedelta) -> bool:
        """Start a job, if this copy of its message is the one that may: the guard's one decision.

        `dead_after` is how long the start may go without a heartbeat before it counts as dead.
        """
        ((started,),) = self.database.run(
            "start",
            direct=True,
            repeatable=True,
            **_named(start),
            task=start.task,
            dead_after=dead_after.total_seconds(),
        )
        return bool(started)

    def start_spaced(self, start: Start, dead_after: timedelta) -> bool | MinGapViolation:
        """Start a job whose periodic task has a min_gap, unless its last start was too short a time ago."""
        for row in self.database.run(
            "start_spaced", **_named(start), task=start.task, dead_after=dead_after.total_seconds()
        ):
            return (
                True
                if row.started
                else MinGapViolation(row.periodic_task, timedelta(microseconds=row.min_gap_microseconds))
            )
        return False

    def start_lost(self, start: Start, dead_after: timedelta) -> bool:
        """Start a job that was given up for lost before it ever started, if nothing of its name has started since."""
        for _ in range(3):
            try:
                return self._changed(
                    "start_lost", **_named(start), task=start.task, dead_after=dead_after.total_seconds()
                )
            except IntegrityError:
                # Another transaction made or started a job of this name at this very moment: the next try sees it.
                continue
            except DatabaseBusy:
                # A transaction that is still open makes a job of this name: that job runs, and this one stays lost.
                return False
        return False

    def state_of(self, job: uuid.UUID) -> JobState | None:
        """Read the state of a job, active or final; nothing if there is no such job."""
        for row in self.database.run("state_of", job=job):
            return JobState(
                row.state,
                row.run,
                row.attempt,
                row.worker,
                row.final,
                row.task,
                row.spaced,
                row.stop_request,
                row.untracked,
            )
        return None

    def finish(self, start: Start, state: str, error: str | None = None) -> bool:
        """Finish a job: it leaves the active table in its final state, which frees its periodic task."""
        # `ask` comes first: if a stop request arrives between the two statements, `finish` still ends the job.
        if state == "failed" and self.ask(start, error):
            return True
        return self._changed("finish", **_named(start), state=state, error=error)

    def ask(self, start: Start, error: str | None) -> bool:
        """Let a job that has failed wait for a decision, if its row asks (on_error = 'ask'), and count the failure."""
        return self._changed("ask", **_named(start), error=error)

    def finish_many(self, finishes: Sequence[Finish]) -> set[uuid.UUID]:
        """Finish many jobs at once; returns those whose rows were locked."""
        starts = [finish.start for finish in finishes]
        rows = self.database.run(
            "finish_many",
            direct=True,
            jobs=array_text(start.job for start in starts),
            runs=array_text(start.run for start in starts),
            attempts=array_text(start.attempt for start in starts),
            tokens=array_text(start.token for start in starts),
            workers=array_text(start.worker for start in starts),
            states=array_text(finish.state for finish in finishes),
            errors=array_text(finish.error for finish in finishes),
        )
        return {job for (job,) in rows}

    def revoke_failed(self, start: Start, error: str) -> bool:
        """Replace `failed` by `revoked`: a terminated child reports a failure before its parent can report."""
        return self._changed("revoke_failed", job=start.job, run=start.run, attempt=start.attempt, error=error)

    def retry(self, start: Start, delay: timedelta, error: str) -> bool:
        """Record that a job will be retried: it is not final, and blocks its row, until the next attempt ends."""
        return self._changed("retry", **_fenced(start), delay=delay.total_seconds(), error=error)

    def requeue(self, start: Start, error: str, resend: bool = False) -> bool:
        """Record that a running job's message went back to the broker: it waits again.

        With `resend` a beat sends another copy, because it is unknown whether that one comes back in time.
        """
        return self._changed("requeue", **_fenced(start), error=error, resend=resend)

    def give_up_start(self, start: Start, error: str) -> bool:
        """Give up a start whose process died: the job is lost, or stays until its deadline if it may run again.

        Returns whether the job is lost.
        """
        return self._changed("give_up_start", job=start.job, run=start.run, token=start.token, error=error)

    def end_unstarted(
        self, copy: MessageCopy, state: str, worker: str, *, reason: str | None = None, error: str | None = None
    ) -> bool:
        """End a job whose message a worker dropped before its start: revoked, expired, unknown, not allowed."""
        named = {"job": copy.job, "run": copy.run, "attempt": copy.attempt, "task": copy.task, "worker": worker}
        return self._changed("end_unstarted", **named, token=_token_of(copy), state=state, reason=reason, error=error)

    def end_unstarted_many(self, ends: Sequence[Unstarted]) -> set[uuid.UUID]:
        """End many jobs at once whose messages a worker dropped; returns those whose rows were locked."""
        rows = self.database.run(
            "end_unstarted_many",
            jobs=[end.copy.job for end in ends],
            runs=[end.copy.run for end in ends],
            attempts=[end.copy.attempt for end in ends],
            workers=[end.worker for end in ends],
            states=[end.state for end in ends],
            reasons=[end.reason for end in ends],
            errors=[end.error for end in ends],
            tasks=[end.copy.task for end in ends],
            tokens=[_token_of(end.copy) for end in ends],
        )
        return {job for (job,) in rows}

    def heartbeat(self, worker: str, starts: Sequence[Start], dead_after: timedelta) -> list[uuid.UUID]:
        """Report that a worker is alive and that these starts still run; restore rows that a failover set back.

        Returns the jobs whose rows agree.
        """
        rows = self.database.run(
            "heartbeat",
            worker=worker,
            jobs=[start.job for start in starts],
            runs=[start.run for start in starts],
            attempts=[start.attempt for start in starts],
            tokens=[start.token for start in starts],
            dead_after=dead_after.total_seconds(),
        )
        return [row.id for row in rows]

    def stop_requests(self, worker: str) -> list[StopRequest]:
        """Read the stop requests of the jobs that a worker runs, each by the token of its start."""
        return [StopRequest(row.token, row.stop_request) for row in self.database.run("stop_requests", worker=worker)]

    def stop_request_of(self, start: Start) -> StopRequest | None:
        """Read the stop request of a start: cancel, terminate, or none."""
        rows = self.database.run("stop_request_of", **_fenced(start))
        return StopRequest(start.token, rows[0].stop_request) if rows and rows[0].stop_request is not None else None

    def announce_node(self, node: NodeId) -> None:
        """Announce a node, or record that it is still alive."""
        self.database.run(
            "announce_node",
            node=str(node),
            role="worker",
            hostname=node.hostname,
            pid=node.pid,
            version=__version__,
            tracking=True,
            mode=None,
            broker_problem=None,
        )

    def starts_of_worker(self, worker: str) -> list[Start]:
        """Read the starts that have not ended at a worker, by the rows of their jobs."""
        return [
            Start(uuid.UUID(str(row.job)), row.run, row.attempt, uuid.UUID(str(row.token)), worker, task=row.task)
            for row in self.database.run("starts_of_worker", worker=worker)
        ]

    def apps(self) -> list[str]:
        """Read the apps whose beats are alive, the one that has the schema first."""
        return [row[0] for row in self.database.run("apps")]

    def remove_worker(self, node: NodeId) -> None:
        """Take a worker that has ended off the list."""
        self.database.run("remove_worker", node=str(node))

    def _changed(self, name: str, **parameters: Any) -> bool:
        return bool(self.database.run(name, **parameters))


def _fenced(start: Start) -> dict[str, Any]:
    return {"job": start.job, "run": start.run, "attempt": start.attempt, "token": start.token}


def _named(start: Start) -> dict[str, Any]:
    return {**_fenced(start), "worker": start.worker}


def _token_of(copy: MessageCopy) -> uuid.UUID | None:
    return copy.token if isinstance(copy, Start) else None
