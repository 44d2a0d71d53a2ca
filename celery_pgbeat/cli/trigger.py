"""`trigger`: start a job now."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("name")
@click.option("--force", is_flag=True, help="Send it even beside a job that is not final yet.")
@as_json
def trigger(name: str, force: bool, as_json: bool) -> None:
    """Start a job of a periodic task now, even of a paused one. Its next run stays where it is."""
    job = Target.current().beat().trigger(name, force)
    if as_json:
        print_json({"periodic_task": name, "job": job})
    else:
        click.echo(f"Triggered {name!r}: job {job}")
