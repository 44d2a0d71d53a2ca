"""`resume`: resume a paused periodic task."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result, text
from celery_pgbeat.cli.target import Target

if TYPE_CHECKING:
    from celery_pgbeat.columns import PeriodicTask


@click.command(cls=ApiCommand)
@click.argument("name")
@as_json
def resume(name: str, as_json: bool) -> None:
    """Resume a paused periodic task. Runs that it missed while paused are not caught up.

    Says if the row was not paused, and what else keeps it from running, such as a paused group.
    """
    beat = Target.current().beat()
    before = beat.get(name)
    print_result(row := beat.resume(name), resumed(before, row), as_json)


def resumed(before: PeriodicTask, row: PeriodicTask) -> str:
    """Return what a resume has changed, and what keeps the row from running all the same."""
    nothing = before.enabled and before.next_run_at == row.next_run_at
    done = f"{row.name!r} was not paused" if nothing else f"Resumed {row.name!r}"
    held = _held_by(row)
    return f"{done}, but {held}" if held else f"{done}."


def _held_by(row: PeriodicTask) -> str | None:
    if row.group_paused:
        group = row.group_name or ""
        return f"its group {group!r} is paused. Resume it with: celery-pgbeat resume-group {shlex.quote(group)}"
    if row.problem is not None:
        return f"it cannot be planned: {text(row.problem)}"
    if row.next_run_at is not None or row.planned_revision != row.revision:
        return None
    if row.schedule is None:
        return f"it has no schedule. Start it with: celery-pgbeat trigger {shlex.quote(row.name)}"
    return "it is finished: its schedule has no further run."
