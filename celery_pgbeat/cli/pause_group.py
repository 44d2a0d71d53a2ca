"""`pause-group`: keep the periodic tasks of a group from running."""

from __future__ import annotations

from dataclasses import asdict

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json
from celery_pgbeat.cli.target import Target


@click.command("pause-group", cls=ApiCommand)
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="The reason, shown in `list` and `explain`.")
@as_json
def pause_group(name: str, reason: str | None, as_json: bool) -> None:
    """Pause all periodic tasks of a group. Messages already at the broker still run."""
    group = Target.current().beat().pause_group(name, reason)
    if as_json:
        print_json(asdict(group))
    else:
        click.echo(f"Paused the group {name!r} until somebody resumes it.")
