"""`resume`: resume a paused periodic task."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("name")
@as_json
def resume(name: str, as_json: bool) -> None:
    """Resume a paused periodic task. Runs that it missed while paused are not caught up."""
    row = Target.current().beat().resume(name)
    print_result(row, f"Resumed {name!r}.", as_json)
