"""`work take`: take a task for people."""

from __future__ import annotations

from collections.abc import Sequence

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.ids import IdBeginning, id_of_job
from celery_pgbeat.cli.output import as_json, print_result, text
from celery_pgbeat.cli.owners import with_owner, with_roles
from celery_pgbeat.cli.target import Target


@click.command("take", cls=ApiCommand)
@click.argument("id", metavar="ID", type=IdBeginning())
@with_owner
@with_roles
@as_json
def pick_up(id: str, owner: str, roles: Sequence[str], as_json: bool) -> None:
    """Take a task for people: it is with the owner until `work done` or `work release`.

    Of the ID the first characters will do, if no other job's id begins with them.

    Exit codes: 0 taken; 1 refused: another person has it (the message says who), it is for others, or it is not open.
    """
    job = id_of_job(id)
    name = Target.current().beat().pick_up(job, owner, roles)
    answer = {"job": job, "periodic_task": name, "state": "running", "owner": owner}
    print_result(answer, text(f"Took a job of {name!r}, as {owner!r}: {job}"), as_json)
