"""`backfill cancel`: end a backfill early."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import click

from celery_pgbeat.cli.command_line.completion import running_backfills
from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.ids import DIGITS, IdBeginning
from celery_pgbeat.cli.output.values import as_json, number, print_result

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat

MOST = 10_000  # running backfills among which the beginning of an id is looked for


@click.command("cancel", cls=ApiCommand)
@click.argument("backfill", metavar="ID", type=IdBeginning(), shell_complete=running_backfills)
@as_json
def cancel_backfill(backfill: str, as_json: bool) -> None:
    """Cancel a backfill: it submits nothing more. Jobs that it has submitted go on.

    Of the ID the first characters will do, if no other running backfill's id begins with them.

    Exit codes: 0 cancelled; 1 there is no such backfill, or it has already ended.
    """
    beat = Target.current().beat()
    row = beat.cancel_backfill(_whole(backfill, beat))
    left = f", {row.active} of them still under way" if row.active else ""
    sentence = f"Cancelled the backfill of {row.periodic_task!r}: it has made {number(row.submitted, 'job')}{left}."
    print_result(row, sentence, as_json)


def _whole(beginning: str, beat: PgBeat) -> UUID:
    """Return the id of the running backfill that begins so."""
    if len(beginning) == DIGITS:
        return UUID(beginning)
    found = [one.id for one in beat.backfills(state="running", limit=MOST) if one.id.hex.startswith(beginning)]
    if len(found) != 1:
        fault = "There is no running backfill" if not found else "There are several running backfills"
        raise Failure(f"{fault} whose id begins with {beginning}; `backfill list` lists them")
    return found[0]
