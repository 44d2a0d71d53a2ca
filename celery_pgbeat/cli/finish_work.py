"""`work done`: finish a task for people."""

from __future__ import annotations

import click

from celery_pgbeat.choices import WorkOutcome
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("done", cls=ApiCommand)
@click.argument("id", metavar="ID", type=IdBeginning())
@click.option("--failed", is_flag=True, help="It has failed; without this it has succeeded.")
@click.option("--note", metavar="TEXT", help="A note about the result; recorded in the history.")
@click.option("--owner", metavar="NAME", help="Only if this person has it; default: any.")
@as_json
def finish_work(id: str, failed: bool, note: str | None, owner: str | None, as_json: bool) -> None:
    """Finish a task for people that a person has taken: it ends as succeeded, or with --failed as failed.

    Of the ID the first characters will do, if no other job's id begins with them.

    Exit codes: 0 done; 1 refused: no person has it, or another than --owner.
    """
    outcome: WorkOutcome = "failed" if failed else "succeeded"
    job = id_of_job(id)
    name = Target.current().beat().finish(job, outcome, note, owner=owner)
    answer = {"job": job, "periodic_task": name, "state": outcome, "note": note}
    print_result(answer, f"Finished a job of {name!r} as {outcome}: {job}", as_json)
