"""`changes`: who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.filters import with_limit
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, say_if_more, text

if TYPE_CHECKING:
    from celery_pgbeat.api import Change


def what(change: Change) -> str:
    """Return what differs, on one line; for a new or removed row nothing."""
    columns = change.columns or (() if change.action in ("created", "removed") else tuple(change.after))
    return ", ".join(_difference(change, column) for column in columns) or EMPTY


def _difference(change: Change, column: str) -> str:
    if column not in change.before and column not in change.after:
        return column  # arguments, for who may not read them
    after = text(change.after.get(column))
    return f"{column}: {text(change.before[column])} -> {after}" if column in change.before else f"{column}: {after}"


COLUMNS = (
    Column("CHANGE", "id"),
    Column("WHEN", "at"),
    Column("WHO", "who", least=9),
    Column("ACTION", "action", colours={"removed": "red", "created": "green"}),
    Column("NAME", "name", whole=True),
    Column("REVISION", "revision", rank=1),
    Column("ROLE", "role", rank=4),
    Column("KIND", "kind", rank=4),
    Column("WHAT", "after", what, beneath=True),
    Column("REASON", "reason", beneath=True),
)


@click.command(cls=ApiCommand)
@click.argument("name", required=False, shell_complete=periodic_task_names)
@with_limit(50)
@click.option("--before", type=int, metavar="CHANGE", help="Only changes below this one in the list: the next page.")
@with_utc
@as_json
def changes(name: str | None, limit: int, before: int | None, as_json: bool) -> None:
    """List who changed what, the latest first; with NAME only of that periodic task, group or named window.

    NAME need not exist any more. What you change in the shell is recorded under the name in the environment variable
    PGBEAT_WHO, if it is set. The arguments of a row that was sensitive then, or is now, are not shown.

    Exit codes: 0 done.
    """
    found = Target.current().beat().changes(name, limit=limit, before=before)
    if as_json:
        print_json(found)
        return
    print_table(COLUMNS, found)
    say_if_more(found, limit, lambda last: f"--before {last.id}")
