"""`job fail`: give up a job that waits for a decision."""

from __future__ import annotations

from uuid import UUID

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("fail", cls=ApiCommand)
@click.argument("id", metavar="ID", type=click.UUID)
@click.option("--reason", metavar="TEXT", help="Why; stands in the job's error, with who decided.")
@as_json
def fail_job(id: UUID, reason: str | None, as_json: bool) -> None:
    """Give up a job in state error, which waits for a decision: it ends as failed.

    Exit codes: 0 done; 1 there is no such job, or it is in another state.
    """
    name = Target.current().beat().fail_job(id, reason)
    print_result({"job": id, "periodic_task": name, "state": "failed"}, f"Gave up a job of {name!r}: {id}", as_json)
