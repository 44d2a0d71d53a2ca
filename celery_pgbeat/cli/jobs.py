"""`jobs`: the jobs and the skipped occurrences."""

from __future__ import annotations

from datetime import datetime
from typing import get_args
from uuid import UUID
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.choices import JobState
from celery_pgbeat.cli.choices import Choice
from celery_pgbeat.cli.completion import periodic_task_names
from celery_pgbeat.cli.failure import ApiCommand, Failure
from celery_pgbeat.cli.filters import with_like, with_queue, with_task
from celery_pgbeat.cli.follow import COLOURS, follow_jobs, with_follow
from celery_pgbeat.cli.instants import read_instant
from celery_pgbeat.cli.output import as_json, instant, print_json, print_table, text
from celery_pgbeat.cli.target import Target

STATES = get_args(JobState)


@click.command(cls=ApiCommand)
@click.argument("name", required=False, shell_complete=periodic_task_names)
@click.option("--state", type=Choice(STATES), help="Only jobs in this state.")
@click.option("--reason", metavar="WORD", help="Only occurrences skipped for this reason, such as overlap or too_late.")
@with_like
@with_task
@with_queue
@click.option(
    "--since",
    metavar="INSTANT",
    callback=read_instant,
    help="Only jobs created since then, such as 1h (ago), yesterday or 2026-12-24T18:00; without an offset in the "
    "app's zone, without an app in UTC.",
)
@click.option("--until", metavar="INSTANT", callback=read_instant, help="Only jobs created before then.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many to show at most.")
@click.option("--after", type=click.UUID, metavar="JOB", help="Only jobs below this one in the list: the next page.")
@with_follow
@as_json
def jobs(
    name: str | None,
    state: str | None,
    reason: str | None,
    like: str | None,
    task: str | None,
    queue: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    after: UUID | None,
    follow: bool,
    as_json: bool,
) -> None:
    """List the jobs, the latest first, a page at a time; with NAME only those of that periodic task.

    Only NAME, --since and --until use an index. With another filter that few jobs pass, Postgres reads the history
    backwards, day by day, until the page is full.

    Exit codes: 0 done, or with --follow ended by Ctrl-C; 1 NAME is unknown, or the job of --after no longer exists.
    """
    if follow:
        if (since, until, after) != (None, None, None):
            raise click.UsageError("--follow begins now: leave out --since, --until and --after")
        if name is not None:
            Target.current().beat().get(name)  # an unknown name is an error
        follow_jobs({state} if state else set(), reason, as_json, name=name, pattern=like, task=task, queue=queue)
        return
    from celery_pgbeat.api.rows import Job, read_row

    target = Target.current()
    operators = target.operators()
    since, until = (
        instant.replace(tzinfo=ZoneInfo(target.timezone)) if instant is not None and instant.tzinfo is None else instant
        for instant in (since, until)
    )
    before_at = None
    if after is not None and (before_at := operators.created_at_of(str(after))) is None:
        raise Failure(f"There is no job {after}; jobs are kept for pgbeat_retention")
    rows = operators.page_of_jobs(
        limit=limit,
        before=None if after is None else str(after),
        before_at=before_at,
        name=name,
        state=state,
        reason=reason,
        pattern=like,
        task=task,
        queue=queue,
        since=since,
        until=until,
    )
    found = [read_row(Job, row) for row in rows]
    if not found and name is not None:
        target.beat().get(name)  # an unknown name is an error, but the jobs of a removed row can be listed
    if as_json:
        print_json(found)
        return
    headings = ("JOB", "PERIODIC TASK", "SCHEDULED FOR", "ORIGIN", "STATE", "STARTED", "FINISHED")
    cells = [
        (
            str(job.id),
            text(job.periodic_task),
            instant(job.scheduled_for),
            text(job.origin),
            text(f"{job.state} ({job.reason})" if job.reason else job.state),
            instant(job.started_at),
            instant(job.finished_at),
        )
        for job in found
    ]
    print_table(headings, cells, COLOURS)
    if len(found) == limit:
        click.echo(f"There may be more: --after {found[-1].id}", err=True)
