"""`group remove`: remove a group that no periodic task names, such as one with a misspelt name."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import group_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=group_names)
@as_json
def remove_group(name: str, as_json: bool) -> None:
    """Remove a group that no periodic task names, with its settings and its pause.

    Exit codes: 0 removed; 1 there is no such group, periodic tasks name it, or
    another group waits for it.
    """
    group = Target.current().beat().remove_group(name)
    print_result(group, f"Removed the group {name!r}.", as_json)
