"""`upcoming`: what runs next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.api.graph import after_in_words
from celery_pgbeat.cli.command_line.completion import periodic_task_names, zone_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.instants import read_coming_instant
from celery_pgbeat.cli.output.instant_table import print_instants
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.terminal import EMPTY
from celery_pgbeat.cli.output.times import both_as_dict, from_now, in_zone, instant, localised, with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, print_pairs, say_if_more, text

if TYPE_CHECKING:
    from celery_pgbeat.api import PeriodicTask, PgBeat, Upcoming
    from celery_pgbeat.schedules import Schedule

ROWS = 100  # rows that are shown by default
RUNS = 10  # runs of one row that are shown by default
NONE_LEFT = "its bounds and blackout windows leave no occurrence"
NOT_EXPECTED = "a task after which it runs has no further run"
KEYS = ("name", "next_run_at", "planned_for", "after")
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
    help="Show times in this zone; default yours, for NAME the row's.",
    shell_complete=zone_names,
)
@click.option(
    "--after",
    metavar="INSTANT",
    callback=read_coming_instant,
    help="Only runs after this instant, such as tomorrow or 2d (from now on); without an offset in the app's zone, "
    "without an app in UTC.",
)
@with_utc
@as_json
def upcoming(name: str | None, count: int | None, zone: str | None, after: datetime | None, as_json: bool) -> None:
    """List the next run of each periodic task, the soonest first; with NAME, its next runs.

    A periodic task without a schedule that runs after others is EXPECTED when the last of these is due. It is sent
    later, when they have ended.
    """
    from celery_pgbeat.schedules.wallclock.zones import zone_named

    target = Target.current()
    shown = None if zone is None else zone_named(zone).name
    if name is None:
        limit = count or ROWS
        runs = target.beat().upcoming(limit=limit, after=after)
        _show_page(runs, target, shown, as_json)
        say_if_more(runs, limit)
        return
    beat = target.beat()
    row, coming = beat.get(name), _runs_of(beat, name, count or RUNS, after)
    state = str(target.operators().statuses_of([name]).get(name, {}).get("state"))
    schedule = _schedule_of(row, target.timezone)
    clock = shown or (target.timezone if schedule is None else schedule.timezone)
    meaning = _meaning(row, state, schedule)
    if coming is None:
        meaning["timezone"] = None
    if as_json:
        print_json({**meaning, "runs": [_run_as_dict(run, clock) for run in coming or ()]})
        return
    meaning["state"] = localised(state)
    print_pairs([(column, text(value)) for column, value in meaning.items() if value is not None])
    if coming is None:
        click.echo(
            "\nNo run is known yet: they are in the app's zone, filled in by the first beat. With -A they are shown."
        )
    else:
        _print_runs(row, state, coming, clock)


def _runs_of(beat: PgBeat, name: str, count: int, after: datetime | None) -> Sequence[Upcoming] | None:
    """Return the coming runs of a row, None while the zone of its clock is not known."""
    from celery_pgbeat.errors import UnknownTimezone

    try:
        return beat.upcoming(name, count, after=after)
    except UnknownTimezone:
        return None


class RunAt(NamedTuple):
    """A run in the future, the time, and the zone in which it is shown; None for the viewer's."""

    run: Upcoming
    now: datetime
    zone: tzinfo | None

    @property
    def next_run_at(self) -> str:
        """When it is due."""
        return self._shown(self.run.next_run_at)

    @property
    def planned_for(self) -> str:
        """The occurrence behind it."""
        return self._shown(self.run.planned_for)

    @property
    def expected(self) -> str:
        """After which tasks it is expected; nothing for a run that a beat plans."""
        return EMPTY if self.run.after is None else text(after_in_words(self.run.after))

    @property
    def moved_from(self) -> str:
        """The occurrence behind it, if that is another instant."""
        return EMPTY if self.run.planned_for == self.run.next_run_at else self.planned_for

    def _shown(self, value: datetime | None) -> str:
        return instant(value) if self.zone is None else in_zone(value, self.zone)


COLUMNS = (
    Column("NAME", "name", lambda run: text(run.run.name), whole=True),
    Column("DUE", "next_run_at", lambda run: from_now(run.run.next_run_at, run.now)),
    Column("NEXT RUN", "next_run_at"),
    Column("PLANNED FOR", "planned_for", short=lambda run: run.moved_from, rank=1),
    Column("EXPECTED", "after", lambda run: run.expected, beneath=True),
)


def _show_page(runs: Sequence[Upcoming], target: Target, zone: str | None, as_json: bool) -> None:
    if as_json:
        print_json([{column: getattr(run, column) for column in KEYS} for run in runs])
        return
    now, shown = target.operators().clock(), None if zone is None else ZoneInfo(zone)
    print_table(COLUMNS, [RunAt(run, now, shown) for run in runs])


def _schedule_of(row: PeriodicTask, timezone: str) -> Schedule | None:
    """Return a row's schedule; None if it has none, or if the row cannot be planned."""
    from celery_pgbeat.schedules import parse

    if row.schedule is None or row.problem is not None:
        return None
    anchor = row.anchor or row.start_at or row.created_at
    return parse(row.schedule, row.timezone or timezone, name=row.name, dst=row.dst, anchor=anchor)


def _meaning(row: PeriodicTask, state: str, schedule: Schedule | None) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": state,
        "problem": row.problem,
        "kind": schedule and schedule.kind,
        "text": row.schedule,
        "description": schedule and schedule.describe(),
        "timezone": schedule and schedule.timezone,
        "after": row.after,
        **{column: getattr(row, column) for column in BOUNDS},
        "run_count": row.run_count if row.max_runs is not None else None,
        "blackout_action": row.blackout_action if row.blackout else None,
    }


def _run_as_dict(run: Upcoming, zone: str) -> dict[str, Any]:
    return {**both_as_dict(run.next_run_at, zone), "planned_for": run.planned_for, "note": run.note}


def why_none(row: PeriodicTask, state: str) -> str:
    """Return why a row has no further run; `state` is the one in the view `status`."""
    of_the_row = localised(state).rpartition(", ")[2]  # after what its job does
    may_run = row.next_run_at is not None or row.planned_revision != row.revision
    is_on = row.enabled and not row.group_paused and row.problem is None
    if is_on and row.schedule is None and row.after is not None:
        return NOT_EXPECTED
    return NONE_LEFT if is_on and may_run else of_the_row


def _print_runs(row: PeriodicTask, state: str, runs: Sequence[Upcoming], zone: str) -> None:
    click.echo()
    if not runs:
        click.echo(f"No further run: {why_none(row, state)}.")
        return
    moved = [None if run.planned_for == run.next_run_at else run.planned_for for run in runs]
    print_instants([run.next_run_at for run in runs], zone, moved, [run.note for run in runs])
