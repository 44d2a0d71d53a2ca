"""`work release`: give a task for people back."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("release", cls=ApiCommand)
@click.argument("id", metavar="ID", type=IdBeginning())
@click.option("--owner", metavar="NAME", help="Only if this person has it; default: any.")
@as_json
def release_work(id: str, owner: str | None, as_json: bool) -> None:
    """Give a task for people back, so that others can take it.

    Of the ID the first characters will do, if no other job's id begins with them.

    Exit codes: 0 done; 1 refused: no person has it, or another than --owner.
    """
    job = id_of_job(id)
    name = Target.current().beat().release(job, owner)
    print_result({"job": job, "periodic_task": name, "state": "created"}, f"Released a job of {name!r}: {job}", as_json)
