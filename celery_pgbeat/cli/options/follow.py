"""`jobs --follow`: print each job when it is made and whenever its state changes, until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from uuid import UUID

import click

from celery_pgbeat.choices import FinalState
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.job_columns import JobAt, job_as_dict, node_in_short
from celery_pgbeat.cli.output.states import OF_JOBS
from celery_pgbeat.cli.output.times import instant
from celery_pgbeat.cli.output.values import json_line, text

if TYPE_CHECKING:
    from celery_pgbeat.api import Job
    from celery_pgbeat.postgres.admin_queries import AdminQueries

FINAL = get_args(FinalState)
LOOK_EVERY = 1.0  # seconds between two reads
# A job that ends before the first look at it is found if its transaction commits within this time after it was made.
OVERLAP = timedelta(seconds=10)

with_follow = click.option(
    "--follow",
    is_flag=True,
    help="Print new and changed jobs as they come, until Ctrl-C; with --json as JSON lines.",
)


class Seen(NamedTuple):
    """What of a job is compared with what was printed."""

    state: str
    attempt: int
    worker: str | None


@dataclass
class Follower:
    """Knows what was printed; each look returns what is new or has changed since, by the database's clock."""

    operators: AdminQueries
    filters: Mapping[str, Any]
    looked_at: datetime
    seen: dict[UUID, Seen] = field(default_factory=dict)

    def look(self) -> list[Job]:
        """Read what may have changed since the last look, and return what has; at the first look, all that is found."""
        from celery_pgbeat.api.rows import read_row
        from celery_pgbeat.columns_of_job import Job

        now = self.operators.clock()
        since = self.looked_at - OVERLAP
        known = [str(id) for id, seen in self.seen.items() if seen.state not in FINAL]
        jobs = [read_row(Job, row) for row in self.operators.changed_jobs(since, known, **self.filters)]
        before, self.looked_at = self.seen, now
        self.seen = {job.id: Seen(job.state, job.attempt, job.worker) for job in jobs}
        return [job for job in jobs if before.get(job.id) != self.seen[job.id]]


def follow_jobs(states: Collection[str], reason: str | None, as_json: bool, **filters: Any) -> None:
    """Print new and changed jobs, until Ctrl-C. While the database is away it waits.

    Args:
        states: only changes into one of these states; empty for all.
        reason: only occurrences that are skipped for this reason; None for all.
        as_json: print JSON lines.
        **filters: see `AdminQueries.changed_jobs`.
    """
    from celery_pgbeat.errors import DatabaseUnavailable

    operators = Target.current().operators()
    try:
        follower = Follower(operators, filters, operators.clock())
        follower.look()  # what is there already is not printed
        while True:
            time.sleep(LOOK_EVERY)
            try:
                changed, now = follower.look(), follower.looked_at
            except DatabaseUnavailable as error:
                click.echo(text(str(error)), err=True)
                continue
            for job in changed:
                if (not states or job.state in states) and reason in (None, job.reason):
                    click.echo(json_line(job_as_dict(JobAt(job, now))) if as_json else _line(job))
    except KeyboardInterrupt:
        return


def _line(job: Job) -> str:
    """Return a job on one line: when it came into its state, the state, the row, the id, and what else is known."""
    moments = (job.finished_at, job.started_at if job.state == "running" else None, job.sent_at, job.created_at)
    at = next(moment for moment in moments if moment is not None)
    more = job.reason or job.error or (node_in_short(job.worker) if job.state == "running" else None)
    shown = (
        instant(at),
        click.style(f"{job.state:<9}", fg=OF_JOBS.get(job.state)),
        text(job.periodic_task),
        str(job.id),
    )
    return "  ".join([*shown, text(more)] if more else shown)
