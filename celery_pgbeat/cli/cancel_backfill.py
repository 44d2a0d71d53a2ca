"""`cancel-backfill`: end a backfill early."""

from __future__ import annotations

from uuid import UUID

import click

from celery_pgbeat.cli.completion import running_backfills
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, number, print_result
from celery_pgbeat.cli.target import Target


@click.command("cancel-backfill", cls=ApiCommand)
@click.argument("backfill", metavar="ID", type=click.UUID, shell_complete=running_backfills)
@as_json
def cancel_backfill(backfill: UUID, as_json: bool) -> None:
    """Cancel a backfill: it submits nothing more. Jobs that it has submitted go on.

    Exit codes: 0 cancelled; 1 there is no such backfill, or it has already ended.
    """
    row = Target.current().beat().cancel_backfill(backfill)
    left = f", {row.active} of them still under way" if row.active else ""
    sentence = f"Cancelled the backfill of {row.periodic_task!r}: it has made {number(row.submitted, 'job')}{left}."
    print_result(row, sentence, as_json)
