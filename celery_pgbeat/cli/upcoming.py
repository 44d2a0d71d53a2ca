"""`upcoming`: what runs next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from celery_pgbeat.cli.completion import periodic_task_names, zone_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.instants import both_as_dict, on_the_clock, print_instants, read_coming_instant
from celery_pgbeat.cli.list import state_of
from celery_pgbeat.cli.output import as_json, print_columns, print_json, print_pairs, text
from celery_pgbeat.cli.target import Target

if TYPE_CHECKING:
    from celery_pgbeat.api import PeriodicTask, Upcoming
    from celery_pgbeat.schedules import Schedule

ROWS = 100  # rows that are shown by default
RUNS = 10  # runs of one row that are shown by default
NONE_LEFT = "its bounds and blackout windows leave no occurrence"
BOUNDS = ("start_at", "end_at", "max_runs", "jitter", "blackout")


@click.command(cls=ApiCommand)
@click.argument("name", required=False, shell_complete=periodic_task_names)
@click.option(
    "--count",
    "--limit",
    "count",
    type=click.IntRange(min=1),
    help=f"How many to show at most; default {ROWS} rows, or {RUNS} runs of NAME.",
)
@click.option(
    "--timezone",
    "zone",
    metavar="ZONE",
    help="Show the times in this zone; default the row's or the app's.",
    shell_complete=zone_names,
)
@click.option(
    "--after",
    metavar="INSTANT",
    callback=read_coming_instant,
    help="Only runs after this instant, such as tomorrow or 2d (from now on); without an offset in the app's zone, "
    "without an app in UTC.",
)
@as_json
def upcoming(name: str | None, count: int | None, zone: str | None, after: datetime | None, as_json: bool) -> None:
    """List the next run of each periodic task, the soonest first; with NAME, its next runs."""
    from celery_pgbeat.schedules.wallclock.zones import zone_named

    target = Target.current()
    shown = None if zone is None else zone_named(zone).name
    if name is None:
        limit = count or ROWS
        runs = target.beat().upcoming(limit=limit, after=after)
        _show_page(runs, shown or target.timezone, as_json)
        if len(runs) == limit:
            click.echo("There may be more: give a higher --limit", err=True)
        return
    beat = target.beat()
    row, runs = beat.get(name), beat.upcoming(name, count or RUNS, after=after)
    schedule = _schedule_of(row, target.timezone)
    clock = shown or (target.timezone if schedule is None else schedule.timezone)
    if as_json:
        print_json({**_meaning(row, schedule), "runs": [_run_as_dict(run, clock) for run in runs]})
    else:
        print_pairs([(column, text(value)) for column, value in _meaning(row, schedule).items() if value is not None])
        _print_runs(row, runs, clock)


def _show_page(runs: Sequence[Upcoming], zone: str, as_json: bool) -> None:
    if as_json:
        print_json(
            [{column: getattr(run, column) for column in ("name", "next_run_at", "planned_for")} for run in runs]
        )
        return
    print_columns(
        {
            "NAME": [text(run.name) for run in runs],
            f"NEXT RUN, {zone}": [on_the_clock(run.next_run_at, zone) for run in runs],
            f"PLANNED FOR, {zone}": [_planned_for(run, zone) for run in runs],
        }
    )


def _schedule_of(row: PeriodicTask, timezone: str) -> Schedule | None:
    """Return a row's schedule; None if it has none, or if the row cannot be planned."""
    from celery_pgbeat.schedules import parse

    if row.schedule is None or row.problem is not None:
        return None
    anchor = row.anchor or row.start_at or row.created_at
    return parse(row.schedule, row.timezone or timezone, name=row.name, dst=row.dst, anchor=anchor)


def _meaning(row: PeriodicTask, schedule: Schedule | None) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": state_of(row),
        "problem": row.problem,
        "kind": schedule and schedule.kind,
        "text": row.schedule,
        "description": schedule and schedule.describe(),
        "timezone": schedule and schedule.timezone,
        **{column: getattr(row, column) for column in BOUNDS},
        "run_count": row.run_count if row.max_runs is not None else None,
        "blackout_action": row.blackout_action if row.blackout else None,
    }


def _run_as_dict(run: Upcoming, zone: str) -> dict[str, Any]:
    return {**both_as_dict(run.next_run_at, zone), "planned_for": run.planned_for, "note": run.note}


def _print_runs(row: PeriodicTask, runs: Sequence[Upcoming], zone: str) -> None:
    click.echo()
    if not runs:
        state = state_of(row)
        reason = NONE_LEFT if state in ("waiting", "to be planned") else state
        click.echo(f"No further run: {reason}.")
        return
    moved = [_planned_for(run, zone) if run.planned_for not in (None, run.next_run_at) else "" for run in runs]
    remarks = {f"PLANNED FOR, {zone}": moved, "NOTE": [run.note or "" for run in runs]}
    print_instants([run.next_run_at for run in runs], zone, remarks)


def _planned_for(run: Upcoming, zone: str) -> str:
    return "-" if run.planned_for is None else on_the_clock(run.planned_for, zone)
