"""Jobs on the command line: what a table, `job` and JSON show of one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from celery_pgbeat.choices import JobState
from celery_pgbeat.cli.options.ids import SHORT
from celery_pgbeat.cli.output.states import OF_JOBS
from celery_pgbeat.cli.output.table import Column
from celery_pgbeat.cli.output.times import duration, from_now, instant
from celery_pgbeat.cli.output.values import row_as_dict, text
from celery_pgbeat.process.node import NodeId

if TYPE_CHECKING:
    from celery_pgbeat.api import Job

STATES = get_args(JobState)


class JobAt(NamedTuple):
    """A job, and the time."""

    job: Job
    now: datetime

    @property
    def state(self) -> str:
        """Its state, with the reason why it was skipped."""
        return text(f"{self.job.state} ({self.job.reason})" if self.job.reason else self.job.state)

    @property
    def lateness(self) -> timedelta | None:
        """How much later than it was due it started; None if it has not, or if a person asked for the past."""
        started = self.job.started_at
        if started is None or self.job.origin == "backfill":
            return None
        return started - (self.job.due_at or self.job.scheduled_for)

    @property
    def duration(self) -> timedelta | None:
        """How long it took, its retries included; of a job that runs, how long until now."""
        if self.job.started_at is None:
            return None
        end = self.job.finished_at or self.now
        return max(end - self.job.started_at, timedelta(0))


COLUMNS = (
    Column("JOB", "id", lambda one: str(one.job.id), short=lambda one: str(one.job.id)[:SHORT]),
    Column("PERIODIC TASK", "periodic_task", lambda one: text(one.job.periodic_task), whole=True),
    Column("STATE", "state", lambda one: one.state, least=9, colours=OF_JOBS),
    Column("WHEN", "scheduled_for", lambda one: from_now(one.job.scheduled_for, one.now)),
    Column("SCHEDULED FOR", "scheduled_for", lambda one: instant(one.job.scheduled_for), rank=3),
    Column("LATE", "lateness", lambda one: duration(one.lateness), rank=1),
    Column("DURATION", "duration", lambda one: duration(one.duration)),
    Column(
        "WORKER", "worker", lambda one: text(one.job.worker), short=lambda one: node_in_short(one.job.worker), rank=2
    ),
    Column("ORIGIN", "origin", lambda one: text(one.job.origin), rank=4),
    Column("STARTED", "started_at", lambda one: instant(one.job.started_at), rank=5),
    Column("FINISHED", "finished_at", lambda one: instant(one.job.finished_at), rank=5),
    Column("ERROR", "error", lambda one: text(one.job.error), beneath=True),
)


def job_as_dict(one: JobAt) -> dict[str, Any]:
    """Return a job as JSON has it."""
    return {**row_as_dict(one.job), "lateness": one.lateness, "duration": one.duration}


def node_in_short(node: str | None) -> str:
    """Return the host and the process of a node's id."""
    known = None if node is None else NodeId.parse(node)
    return text(node if known is None else f"{known.hostname}:{known.pid}")
