"""`overdue`: what should have happened and has not."""

from __future__ import annotations

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.filters import with_limit
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.times import instant, localised, rounded, with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, say_if_more, text

COLUMNS = (
    Column("NAME", "name", lambda row: text(row["name"]), whole=True),
    Column("LATE BY", "late_by", lambda row: rounded(row["late_by"])),
    Column("DUE AT", "due_at", lambda row: instant(row["due_at"])),
    Column("REASON", "reason", lambda row: text(localised(row["reason"])), beneath=True),
)


@click.command(cls=ApiCommand)
@with_limit(100)
@with_utc
@as_json
def overdue(limit: int, as_json: bool) -> None:
    """List what should have happened and has not, and why; the longest late first. Exit code 0.

    It is the view overdue: runs, plans and resumptions that are late by more than 2 x (lease + poll), and jobs that
    were not sent, started or ended in time. It is right even if every beat is dead.
    """
    found = Target.current().operators().overdue(limit)
    if as_json:
        print_json(found)
    elif found:
        print_table(COLUMNS, found)
    else:
        click.echo("Nothing is overdue.")
    say_if_more(found, limit)
