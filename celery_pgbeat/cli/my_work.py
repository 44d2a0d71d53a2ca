"""`work list`: what a person has, and may take."""

from __future__ import annotations

from collections.abc import Sequence

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.ids import SHORT
from celery_pgbeat.cli.options.owners import with_owner, with_roles
from celery_pgbeat.cli.output.states import OF_JOBS
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.times import with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, row_as_dict, text

COLUMNS = (
    Column("JOB", "id", short=lambda one: str(one.id)[:SHORT]),
    Column("PERIODIC TASK", "periodic_task", whole=True),
    Column("STATE", "state", colours=OF_JOBS),
    Column("SCHEDULED FOR", "scheduled_for", rank=2),
    Column("DUE BY", "due_by"),
    Column("OVERDUE", "overdue", lambda one: "overdue" if one.overdue else "-", colours={"overdue": "red"}),
    Column("ASKED TO", "stop_request", rank=2),
    Column("FOR", "target", lambda one: text(", ".join(one.target) if one.target else None), rank=1, least=10),
    Column("SUBJECT", "subject", beneath=True),
)


@click.command("list", cls=ApiCommand)
@with_owner
@with_roles
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many to show.")
@with_utc
@as_json
def my_work(owner: str, targets: Sequence[str], limit: int, as_json: bool) -> None:
    """List the tasks for people that the owner has (running), and those that the owner may take (created).

    What the owner has comes first, then what is due first. Exit codes: 0 done; 1 refused.
    """
    found = Target.current().beat().my_work(owner, targets, limit=limit)
    if as_json:
        print_json([row_as_dict(one) for one in found])
    elif found:
        print_table(COLUMNS, found)
    else:
        click.echo(f"There is nothing to do for {text(owner)!r}.")
