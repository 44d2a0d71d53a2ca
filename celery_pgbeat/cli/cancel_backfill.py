"""`cancel-backfill`: end a backfill before it is over."""

from __future__ import annotations

from uuid import UUID

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, number, print_json, row_as_dict
from celery_pgbeat.cli.target import Target


@click.command("cancel-backfill", cls=ApiCommand)
@click.argument("backfill", metavar="ID", type=click.UUID)
@as_json
def cancel_backfill(backfill: UUID, as_json: bool) -> None:
    """Cancel a backfill: what it has not submitted yet is dropped, the jobs that it has made go on.

    Exit codes: 0 cancelled; 1 there is no such backfill, or it was over already.
    """
    row = Target.current().beat().cancel_backfill(backfill)
    if as_json:
        print_json(row_as_dict(row))
    else:
        left = f", {row.active} of them still under way" if row.active else ""
        click.echo(
            f"Cancelled the backfill of {row.periodic_task!r}: it has made {number(row.submitted, 'job')}{left}."
        )
