"""`work take`: take a task for people."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result, text
from celery_pgbeat.cli.owners import with_owner, with_roles
from celery_pgbeat.cli.target import Target


@click.command("take", cls=ApiCommand)
@click.argument("id", metavar="ID", type=click.UUID)
@with_owner
@with_roles
@as_json
def pick_up(id: UUID, owner: str, roles: Sequence[str], as_json: bool) -> None:
    """Take a task for people: it is with the owner until `work done` or `work release`.

    Exit codes: 0 taken; 1 refused: somebody else has it (the message says who), it is for others, or it is not open.
    """
    name = Target.current().beat().pick_up(id, owner, roles)
    answer = {"job": id, "periodic_task": name, "state": "running", "owner": owner}
    print_result(answer, text(f"Took a job of {name!r}, as {owner!r}: {id}"), as_json)
