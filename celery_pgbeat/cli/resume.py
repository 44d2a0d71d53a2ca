"""`resume`: let a paused periodic task run again."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json, row_as_dict
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("name")
@as_json
def resume(name: str, as_json: bool) -> None:
    """Resume a paused periodic task; what it missed meanwhile is not caught up."""
    row = Target.current().beat().resume(name)
    if as_json:
        print_json(row_as_dict(row))
    else:
        click.echo(f"Resumed {name!r}.")
