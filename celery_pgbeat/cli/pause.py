"""`pause`: pause a periodic task."""

from __future__ import annotations

from datetime import datetime

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.instants import read_instant
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target
from celery_pgbeat.cli.times import instant, with_utc


@click.command(cls=ApiCommand)
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="The reason, shown in `list` and `explain`.")
@click.option(
    "--until",
    metavar="INSTANT",
    callback=read_instant,
    help="When it resumes by itself, in ISO 8601; without an offset in the app's zone, without an app in UTC.",
)
@with_utc
@as_json
def pause(name: str, reason: str | None, until: datetime | None, as_json: bool) -> None:
    """Pause a periodic task. Messages already at the broker still run."""
    row = Target.current().beat().pause(name, reason, until)
    end = "you resume it" if row.paused_until is None else instant(row.paused_until)
    print_result(row, f"Paused {name!r} until {end}.", as_json)
