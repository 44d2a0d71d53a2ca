"""`group resume`: resume a paused group."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import group_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("resume", cls=ApiCommand)
@click.argument("name", shell_complete=group_names)
@click.option("--retry", is_flag=True, help="First run the jobs again whose failure has paused the group.")
@as_json
def resume_group(name: str, retry: bool, as_json: bool) -> None:
    """Resume a paused group, or open a finished one.

    Jobs that wait in it go on. Missed runs are not caught up, and a row that was paused by name stays paused.
    """
    group = Target.current().beat().resume_group(name, retry=retry)
    print_result(group, f"Resumed the group {name!r}.", as_json)
