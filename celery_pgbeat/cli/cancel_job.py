"""`job cancel`: cancel a job that no worker runs, or one for people."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("cancel", cls=ApiCommand)
@click.argument("id", metavar="ID", type=IdBeginning())
@click.option("--reason", metavar="TEXT", help="Why; recorded in the job's error, with who cancelled it.")
@as_json
def cancel_job(id: str, reason: str | None, as_json: bool) -> None:
    """Cancel a job that no worker runs, or one for people, picked up or not: it ends as revoked.

    If its message is still at the broker, the guard drops it. A job that a worker runs is refused: revoke it with
    Celery.

    Of the ID the first characters will do, if no other job's id begins with them.

    Exit codes: 0 done; 1 there is no such job, or it is refused.
    """
    job = id_of_job(id)
    name = Target.current().beat().cancel_job(job, reason)
    answer = {"job": job, "periodic_task": name, "state": "revoked"}
    print_result(answer, f"Cancelled a job of {name!r}: {job}", as_json)
