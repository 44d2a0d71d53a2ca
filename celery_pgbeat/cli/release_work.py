"""`work release`: give a task for people back."""

from __future__ import annotations

from uuid import UUID

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("release", cls=ApiCommand)
@click.argument("id", metavar="ID", type=click.UUID)
@click.option("--owner", metavar="NAME", help="Only if it is with this one; default: whoever has it.")
@as_json
def release_work(id: UUID, owner: str | None, as_json: bool) -> None:
    """Give a task for people back, so that others can take it.

    Exit codes: 0 done; 1 refused: nobody has it, or somebody else than --owner.
    """
    name = Target.current().beat().release(id, owner)
    print_result({"job": id, "periodic_task": name, "state": "created"}, f"Released a job of {name!r}: {id}", as_json)
