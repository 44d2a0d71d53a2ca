"""`resume-group`: resume a paused group."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("resume-group", cls=ApiCommand)
@click.argument("name")
@as_json
def resume_group(name: str, as_json: bool) -> None:
    """Resume a group. Missed runs are not caught up, and a row that was paused by name stays paused."""
    group = Target.current().beat().resume_group(name)
    print_result(group, f"Resumed the group {name!r}.", as_json)
