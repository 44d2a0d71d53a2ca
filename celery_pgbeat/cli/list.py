"""`list`: the periodic tasks, a page at a time."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.filters import with_group_name, with_like, with_managed_by, with_queue, with_task
from celery_pgbeat.cli.output import as_json, instant, print_json, print_table, text
from celery_pgbeat.cli.refused import as_row, print_refused
from celery_pgbeat.cli.target import Target

if TYPE_CHECKING:
    from celery_pgbeat.api import PeriodicTask

COLOURS = {"problem": "red", "paused": "yellow", "finished": "bright_black"}


@click.command(cls=ApiCommand)
@with_like
@with_task
@with_queue
@with_managed_by
@with_group_name
@click.option("--enabled/--paused", default=None, help="Only enabled rows, or only paused ones.")
@click.option("--with-problem", is_flag=True, default=None, help="Only rows that cannot be planned.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many to show at most.")
@click.option("--after", metavar="NAME", default="", help="Only names later than this: the next page.")
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

    What code declares and beats refuse has no row. A line on stderr names each, with the reason; with --json it is an
    element whose state is `refused`, after the last row.
    """
    from celery_pgbeat.api.rows import read_row
    from celery_pgbeat.columns import PeriodicTask

    operators = Target.current().operators()
    found = operators.page_of_tasks(
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
    rows = [read_row(PeriodicTask, row) for row in found]
    # Of what is refused only the name and the app are known, and it is shown once: with the last page.
    may_fit = (task, queue, group_name, enabled) == (None,) * 4 and len(rows) < limit
    refused = operators.refused_declarations(pattern=like, managed_by=managed_by) if may_fit else []
    if as_json:
        print_json([*rows, *map(as_row, refused)])
        return
    headings = ("NAME", "TASK", "SCHEDULE", "NEXT RUN", "STATE", "MANAGED BY")
    print_table(headings, [_cells(row) for row in rows], COLOURS)
    print_refused(refused)
    if len(rows) == limit:
        click.echo(f"There may be more: --after {text(quote(rows[-1].name))}", err=True)


def _cells(row: PeriodicTask) -> tuple[str, ...]:
    schedule, manager = text(row.schedule), text(row.managed_by)
    return text(row.name), text(row.task), schedule, instant(row.next_run_at), state_of(row), manager


def state_of(row: PeriodicTask) -> str:
    """Return the state of a row in one or two words."""
    if not row.enabled:
        return "paused" if row.paused_until is None else f"paused until {instant(row.paused_until)}"
    if row.group_paused:
        return "group paused"
    if row.problem is not None:
        return "problem"
    if row.next_run_at is not None:
        return "waiting"
    if row.planned_revision != row.revision:
        return "to be planned"
    return "on demand" if row.schedule is None else "finished"
