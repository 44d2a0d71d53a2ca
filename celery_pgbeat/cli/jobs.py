"""`jobs`: what was submitted and what was skipped."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import DoorCommand
from celery_pgbeat.cli.output import as_json, instant, print_json, print_table, row_as_dict, text
from celery_pgbeat.cli.target import Target

STATES = (
    "pending",
    "submitted",
    "running",
    "retrying",
    "buffered",
    "succeeded",
    "failed",
    "revoked",
    "expired",
    "lost",
    "skipped",
)
COLOURS = {"succeeded": "green", "failed": "red", "lost": "red", "expired": "yellow", "skipped": "yellow"}


@click.command(cls=DoorCommand)
@click.argument("name", required=False)
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@as_json
def jobs(name: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List the jobs, the latest first; with NAME only those of that periodic task."""
    found = Target.current().beat().jobs(name, state, limit)
    if as_json:
        print_json([row_as_dict(job) for job in found])
        return
    headings = ("JOB", "PERIODIC TASK", "SCHEDULED FOR", "ORIGIN", "STATE", "STARTED", "FINISHED")
    cells = [
        (
            str(job.id),
            text(job.periodic_task),
            instant(job.scheduled_for),
            job.origin,
            f"{job.state} ({job.reason})" if job.reason else job.state,
            instant(job.started_at),
            instant(job.finished_at),
        )
        for job in found
    ]
    print_table(headings, cells, COLOURS)
