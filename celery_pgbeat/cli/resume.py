"""`resume`: resume paused periodic tasks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.chosen import choose, left_alone, one_name, spoken, with_names
from celery_pgbeat.cli.options.confirmation import with_yes
from celery_pgbeat.cli.output.values import as_json, print_result, text

if TYPE_CHECKING:
    from celery_pgbeat.columns import PeriodicTask


@click.command(cls=ApiCommand)
@with_names
@click.option(
    "--reason", metavar="TEXT", help="Of what a pattern or --all means, only rows that were paused for this reason."
)
@with_yes
@as_json
def resume(names: tuple[str, ...], every: bool, reason: str | None, yes: bool, as_json: bool) -> None:
    """Resume paused periodic tasks. Runs that they missed while paused are not caught up.

    NAME may be a pattern, see "Names and patterns" in docs/shell.md. A pattern or --all resumes only paused rows.

    Says if the row was not paused, and what else keeps it from running, such as a paused group.

    Exit codes: 0 resumed; 1 a name is unknown, a pattern matches nothing, or the question was not answered with yes:
    nothing was resumed.
    """
    beat = Target.current().beat()
    if (name := one_name(names, every)) is not None:
        before = beat.get(name)
        print_result(row := beat.resume(name), resumed(before, row), as_json)
        return
    needless = "not paused" if reason is None else f"not paused for the reason {reason!r}"
    chosen = choose(names, every, lambda row: not row["enabled"] and reason in (None, row["pause_reason"]), needless)
    chosen.confirm("Resume", yes)
    done = beat.resume_many(chosen.names, missing_ok=True)
    paused = sum(row["group_paused"] for row in chosen.rows)
    if paused:
        click.echo(f"{paused:,} of them still do not run: their group is paused.", err=True)
    print_result({"resumed": done}, f"Resumed {spoken(done)}.{left_alone(chosen, needless)}", as_json)


def resumed(before: PeriodicTask, row: PeriodicTask) -> str:
    """Return what a resume has changed, and what keeps the row from running all the same."""
    nothing = before.enabled and before.next_run_at == row.next_run_at
    done = f"{row.name!r} was not paused" if nothing else f"Resumed {row.name!r}"
    why = _stopped_by(row)
    return f"{done}, but {why}" if why else f"{done}."


def _stopped_by(row: PeriodicTask) -> str | None:
    if row.group_paused:
        group = row.group_name or ""
        return f"its group {group!r} is paused. Resume it with: celery-pgbeat group resume {shlex.quote(group)}"
    if row.problem is not None:
        return f"it cannot be planned: {text(row.problem)}"
    if row.next_run_at is not None or row.planned_revision != row.revision:
        return None
    if row.schedule is None:
        return f"it has no schedule. Start it with: celery-pgbeat trigger {shlex.quote(row.name)}"
    return "it is finished: its schedule has no further run."
