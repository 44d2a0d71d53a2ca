"""`backfill list`: the backfills and their progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import click

from celery_pgbeat.choices import BackfillState
from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.choices import Choice
from celery_pgbeat.cli.options.filters import with_limit
from celery_pgbeat.cli.options.ids import SHORT
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.times import with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, say_if_more, text

if TYPE_CHECKING:
    from celery_pgbeat.api import Backfill

SUMMARY = ("state", "total", "submitted", "skipped", "active", "problem")
COLUMNS = (
    Column("BACKFILL", "id", short=lambda one: str(one.id)[:SHORT]),
    Column("PERIODIC TASK", "periodic_task", whole=True),
    Column("STATE", "state", colours={"finished": "green", "cancelled": "yellow"}),
    Column("DECIDED", "total", lambda one: f"{one.submitted + one.skipped} of {text(one.total)}"),
    Column("SUBMITTED", "submitted", rank=4),
    Column("ACTIVE", "active"),
    Column("SINCE", "since", rank=2),
    Column("UNTIL", "until", rank=2),
    Column("MODE", "mode", rank=3),
    Column("PROBLEM", "problem", beneath=True),
)


@click.command(cls=ApiCommand)
@click.argument("name", required=False, shell_complete=periodic_task_names)
@click.option("--state", type=Choice(get_args(BackfillState)), help="Only backfills in this state.")
@with_limit(50)
@with_utc
@as_json
def backfills(name: str | None, state: BackfillState | None, limit: int, as_json: bool) -> None:
    """List the backfills, the latest first; with NAME only those of that periodic task.

    Exit codes: 0 done; 1 no periodic task is named NAME.
    """
    beat = Target.current().beat()
    found = beat.backfills(name, state, limit)
    if name is not None and not found and not beat.backfills(name, limit=1):
        beat.get(name)  # an unknown name is an error
    if as_json:
        print_json(found)
        return
    print_table(COLUMNS, found)
    say_if_more(found, limit)


def as_pairs(one: Backfill, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return these columns of a backfill, without the empty ones."""
    values = [(column, getattr(one, column)) for column in columns]
    return [(column.replace("_", " "), text(value)) for column, value in values if value is not None]
