"""`explain`: why a periodic task is, or is not, running now."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import periodic_task_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target
from celery_pgbeat.cli.times import localised, with_utc


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@with_utc
@as_json
def explain(name: str, as_json: bool) -> None:
    """Explain in one sentence why a periodic task is, or is not, running now."""
    sentence = Target.current().beat().explain(name)
    print_result({"name": name, "explanation": sentence}, localised(sentence), as_json)
