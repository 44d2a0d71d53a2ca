"""`trigger`: start a job now."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.no_beat import warn_without_beat
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("name")
@click.option("--force", is_flag=True, help="Start it even while another job of it is not final.")
@as_json
def trigger(name: str, force: bool, as_json: bool) -> None:
    """Start a job of a periodic task now, even of a paused one. Its next run does not change.

    A beat sends it. If none is alive, a line on stderr says so.
    """
    beat = Target.current().beat()
    job = beat.trigger(name, force)
    print_result({"periodic_task": name, "job": job}, f"Triggered {name!r}: job {job}", as_json)
    warn_without_beat(beat)
