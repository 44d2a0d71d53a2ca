"""`explain`: why a periodic task is, or is not, running now."""

from __future__ import annotations

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.times import localised, with_utc
from celery_pgbeat.cli.output.values import as_json, print_result


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@with_utc
@as_json
def explain(name: str, as_json: bool) -> None:
    """Explain in one sentence why a periodic task is, or is not, running now."""
    sentence = Target.current().beat().explain(name)
    print_result({"name": name, "explanation": sentence}, localised(sentence), as_json)
