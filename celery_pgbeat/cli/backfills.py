"""`backfills`: the backfills and their progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import click

from celery_pgbeat.choices import BackfillState
from celery_pgbeat.cli.choices import Choice
from celery_pgbeat.cli.completion import periodic_task_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, instant, print_json, print_table, text
from celery_pgbeat.cli.target import Target

if TYPE_CHECKING:
    from celery_pgbeat.api import Backfill

SUMMARY = ("state", "total", "submitted", "skipped", "active", "problem")
COLOURS = {"finished": "green", "cancelled": "yellow"}


@click.command(cls=ApiCommand)
@click.argument("name", required=False, shell_complete=periodic_task_names)
@click.option("--state", type=Choice(get_args(BackfillState)), help="Only backfills in this state.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many to show at most.")
@as_json
def backfills(name: str | None, state: BackfillState | None, limit: int, as_json: bool) -> None:
    """List the backfills, the latest first; with NAME only those of that periodic task.

    Exit codes: 0 done; 1 NAME is unknown.
    """
    found = Target.current().beat().backfills(name, state, limit)
    if not found and name is not None:
        Target.current().beat().get(name)  # an unknown name is an error
    if as_json:
        print_json(found)
        return
    headings = ("BACKFILL", "PERIODIC TASK", "SINCE", "UNTIL", "MODE", "DECIDED", "SUBMITTED", "ACTIVE", "STATE")
    cells = [
        (
            str(one.id),
            text(one.periodic_task),
            instant(one.since),
            instant(one.until),
            one.mode,
            f"{one.submitted + one.skipped} of {text(one.total)}",
            str(one.submitted),
            str(one.active),
            f"{one.state} ({text(one.problem)})" if one.problem else one.state,
        )
        for one in found
    ]
    print_table(headings, cells, COLOURS)
    if len(found) == limit:
        click.echo("There may be more: give a higher --limit", err=True)


def as_pairs(one: Backfill, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return these columns of a backfill, without the empty ones."""
    values = [(column, getattr(one, column)) for column in columns]
    return [(column.replace("_", " "), text(value)) for column, value in values if value is not None]
