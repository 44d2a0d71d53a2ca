"""`group finish`: a group takes no new jobs."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import group_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("finish", cls=ApiCommand)
@click.argument("name", shell_complete=group_names)
@as_json
def finish_group(name: str, as_json: bool) -> None:
    """Finish a group: its occurrences are skipped, and `trigger` is refused, until `group resume` opens it.

    Jobs that wait or are under way go on.
    """
    group = Target.current().beat().finish_group(name)
    print_result(group, f"The group {name!r} takes no new jobs until you resume it.", as_json)
