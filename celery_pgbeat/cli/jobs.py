"""`jobs`: the jobs and the skipped occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.choices import Choice
from celery_pgbeat.cli.options.filters import with_group_name_of_jobs, with_like, with_limit, with_queue, with_task
from celery_pgbeat.cli.options.follow import follow_jobs, with_follow
from celery_pgbeat.cli.options.instants import read_instant
from celery_pgbeat.cli.output.job_columns import COLUMNS, STATES, JobAt, job_as_dict
from celery_pgbeat.cli.output.table import print_table
from celery_pgbeat.cli.output.times import with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, say_if_more

if TYPE_CHECKING:
    from celery_pgbeat.postgres.admin_queries import AdminQueries


class States(Choice):
    """One or several states, with commas between them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return them as a list."""
        return [super(States, self).convert(word.strip(), param, ctx) for word in value.split(",")]


@click.command(cls=ApiCommand)
@click.argument("name", required=False, shell_complete=periodic_task_names)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=States(STATES),
    help="Only jobs in this state; several with commas between them, or given several times.",
)
@click.option("--reason", metavar="WORD", help="Only occurrences skipped for this reason, such as overlap or too_late.")
@with_like
@with_task
@with_queue
@with_group_name_of_jobs
@click.option(
    "--since",
    metavar="INSTANT",
    callback=read_instant,
    help="Only jobs created since then, such as 1h (ago), yesterday or 2026-12-24T18:00; without an offset in the "
    "app's zone, without an app in UTC.",
)
@click.option("--until", metavar="INSTANT", callback=read_instant, help="Only jobs created before then.")
@with_limit(50)
@click.option("--after", type=click.UUID, metavar="JOB", help="Only jobs below this one in the list: the next page.")
@with_follow
@with_utc
@as_json
def jobs(
    name: str | None,
    states: Sequence[Sequence[str]],
    reason: str | None,
    like: str | None,
    task: str | None,
    queue: str | None,
    group_name: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    after: UUID | None,
    follow: bool,
    as_json: bool,
) -> None:
    """List the jobs, the latest first, a page at a time; with NAME only those of that periodic task.

    WHEN is how long ago, or in what time, the job was scheduled for. LATE is how much later it started than it was due.
    `job ID` shows one of them in full; the first characters of its id will do.

    Only NAME, --since and --until use an index. With another filter that few jobs pass, Postgres reads the history
    backwards, day by day, until the page is full.

    Exit codes: 0 done, or with --follow ended by Ctrl-C; 1 NAME is unknown, or the job of --after no longer exists.
    """
    if follow:
        if (since, until, after) != (None, None, None):
            raise click.UsageError("--follow begins now: leave out --since, --until and --after")
        if name is not None:
            Target.current().beat().get(name)  # an unknown name is an error
        wanted = {state for some in states for state in some}
        follow_jobs(wanted, reason, as_json, name=name, pattern=like, task=task, queue=queue, group_name=group_name)
        return
    from celery_pgbeat.api.rows import read_row
    from celery_pgbeat.columns_of_job import Job

    operators = Target.current().operators()
    before_at = None
    if after is not None and (before_at := operators.created_at_of(str(after))) is None:
        raise Failure(f"There is no job {after}; jobs are kept for pgbeat_retention")
    rows = operators.page_of_jobs(
        limit=limit,
        before=None if after is None else str(after),
        before_at=before_at,
        name=name,
        states=[state for some in states for state in some] or None,
        reason=reason,
        pattern=like,
        task=task,
        queue=queue,
        group_name=group_name,
        since=since,
        until=until,
    )
    if name is not None and not rows:
        _refuse_unknown(name, operators)
    now = operators.clock()
    found = [JobAt(read_row(Job, row), now) for row in rows]
    if as_json:
        print_json([job_as_dict(one) for one in found])
        return
    print_table(COLUMNS, found)
    say_if_more(found, limit, lambda last: f"--after {last.job.id}")


def _refuse_unknown(name: str, operators: AdminQueries) -> None:
    """Refuse a name that is neither that of a periodic task nor that of any job."""
    if not operators.page_of_jobs(limit=1, name=name):
        Target.current().beat().get(name)
