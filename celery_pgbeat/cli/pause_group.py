"""`group pause`: pause the periodic tasks of a group."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import group_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("pause", cls=ApiCommand)
@click.argument("name", shell_complete=group_names)
@click.option("--reason", metavar="TEXT", help="The reason, shown in `list` and `explain`.")
@as_json
def pause_group(name: str, reason: str | None, as_json: bool) -> None:
    """Pause all periodic tasks of a group. Messages already at the broker still run."""
    group = Target.current().beat().pause_group(name, reason)
    print_result(group, f"Paused the group {name!r} until you resume it.", as_json)
