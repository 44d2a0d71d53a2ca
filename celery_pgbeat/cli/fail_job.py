"""`job fail`: give up a job that waits for a decision."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("fail", cls=ApiCommand)
@click.argument("id", metavar="ID", type=IdBeginning())
@click.option("--reason", metavar="TEXT", help="Why; recorded in the job's error, with who decided.")
@as_json
def fail_job(id: str, reason: str | None, as_json: bool) -> None:
    """Give up a job in state error, which waits for a decision: it ends as failed.

    Of the ID the first characters will do, if no other job's id begins with them.

    Exit codes: 0 done; 1 there is no such job, or it is in another state.
    """
    job = id_of_job(id)
    name = Target.current().beat().fail_job(job, reason)
    print_result({"job": job, "periodic_task": name, "state": "failed"}, f"Gave up a job of {name!r}: {job}", as_json)
