"""`resume-group`: let the periodic tasks of a paused group run again."""

from __future__ import annotations

from dataclasses import asdict

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json
from celery_pgbeat.cli.target import Target


@click.command("resume-group", cls=ApiCommand)
@click.argument("name")
@as_json
def resume_group(name: str, as_json: bool) -> None:
    """Resume a group; what its periodic tasks missed meanwhile is not caught up. A row paused by itself stays so."""
    group = Target.current().beat().resume_group(name)
    if as_json:
        print_json(asdict(group))
    else:
        click.echo(f"Resumed the group {name!r}.")
