"""`list`: the periodic tasks, a page at a time."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.filters import (
    with_group_name,
    with_like,
    with_limit,
    with_managed_by,
    with_queue,
    with_task,
)
from celery_pgbeat.cli.output.refused import as_row, print_refused
from celery_pgbeat.cli.output.states import OF_JOBS, OF_TASKS
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.times import from_now, instant, localised, until_from_now, with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, row_as_dict, say_if_more, text

if TYPE_CHECKING:
    from datetime import datetime

    from celery_pgbeat.api import PeriodicTask

STATUS = ("state", "last_state", "last_scheduled_for", "lateness", "failures")  # of the view, besides the columns


class Listed(NamedTuple):
    """A periodic task, its row of the view `status`, and the time."""

    task: PeriodicTask
    status: dict[str, Any]
    now: datetime

    @property
    def next_run_at(self) -> datetime | None:
        """The next run; None for one that came during a pause."""
        return next_run_of(self.task, self.now)


COLUMNS = (
    Column("NAME", "name", lambda row: text(row.task.name), whole=True),
    Column(
        "STATE",
        "state",
        lambda row: localised(row.status["state"]),
        short=lambda row: until_from_now(row.status["state"], row.now),
        least=12,
        colours=OF_TASKS,
    ),
    Column("DUE", "next_run_at", lambda row: from_now(row.next_run_at, row.now)),
    Column("NEXT RUN", "next_run_at", lambda row: instant(row.next_run_at), rank=2),
    Column("LAST STATE", "last_state", lambda row: text(row.status["last_state"]), colours=OF_JOBS),
    Column("AGO", "last_scheduled_for", lambda row: from_now(row.status["last_scheduled_for"], row.now)),
    Column("LAST RUN", "last_scheduled_for", lambda row: instant(row.status["last_scheduled_for"]), rank=5),
    Column("SCHEDULE", "schedule", lambda row: text(row.task.schedule), rank=3, least=20),
    Column("TASK", "task", lambda row: text(row.task.task), rank=4, least=20),
    Column("MANAGED BY", "managed_by", lambda row: text(row.task.managed_by), rank=6, least=10),
    Column("PROBLEM", "problem", lambda row: text(row.task.problem), beneath=True),
)


@click.command(cls=ApiCommand)
@with_like
@with_task
@with_queue
@with_managed_by
@with_group_name
@click.option("--enabled/--paused", default=None, help="Only enabled rows, or only paused ones.")
@click.option(
    "--with-problem",
    is_flag=True,
    default=None,
    help="Only rows that cannot be planned, or whose failed job waits for a decision.",
)
@with_limit(100)
@click.option("--after", metavar="NAME", default="", help="Only names later than this: the next page.")
@with_utc
@as_json
def list(
    like: str | None,
    task: str | None,
    queue: str | None,
    managed_by: str | None,
    group_name: str | None,
    enabled: bool | None,
    with_problem: bool | None,
    limit: int,
    after: str,
    as_json: bool,
) -> None:
    """List the periodic tasks in name order, a page at a time. Exit code 0.

    The states are those of the view status. DUE is the next run, AGO the last one. A narrow terminal shows fewer
    columns; a pipe has all of them, uncut.

    What code declares and beats refuse has no row. A line on stderr names each, with the reason; with --json it is an
    element whose state is `refused`, after the last row.
    """
    from celery_pgbeat.api.rows import read_row
    from celery_pgbeat.columns import PUBLIC, PeriodicTask

    operators = Target.current().operators()
    read = operators.page_of_tasks if as_json else operators.page_of_open_tasks  # a table has no arguments
    found = read(
        limit=limit,
        after=after,
        pattern=like,
        task=task,
        queue=queue,
        managed_by=managed_by,
        group_name=group_name,
        enabled=enabled,
        with_problem=with_problem,
    )
    tasks = [read_row(PeriodicTask, {**dict.fromkeys(PUBLIC), **row}) for row in found]
    statuses = operators.statuses_of([row.name for row in tasks])
    known = [(row, statuses[row.name]) for row in tasks if row.name in statuses]  # without those removed meanwhile
    # Of what is refused only the name and the app are known, and it is shown once: with the last page.
    may_fit = (task, queue, group_name, enabled) == (None,) * 4 and len(tasks) < limit
    refused = operators.refused_declarations(pattern=like, managed_by=managed_by) if may_fit else []
    if as_json:
        print_json([*({**row_as_dict(row), **status_as_dict(status)} for row, status in known), *map(as_row, refused)])
        return
    now = operators.clock()
    print_table(COLUMNS, [Listed(row, status, now) for row, status in known])
    print_refused(refused)
    say_if_more(tasks, limit, lambda last: f"--after {text(quote(last.name))}")


def next_run_of(task: PeriodicTask, now: datetime) -> datetime | None:
    """Return the next run; None for one that came during a pause, because it is never caught up."""
    paused = not task.enabled or task.group_paused
    return None if paused and task.next_run_at is not None and task.next_run_at <= now else task.next_run_at


def status_as_dict(status: dict[str, Any]) -> dict[str, Any]:
    """Return what the view `status` adds to the columns of a periodic task."""
    return {column: status[column] for column in STATUS}
