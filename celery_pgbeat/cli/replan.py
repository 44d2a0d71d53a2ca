"""`replan`: have beats plan next runs again."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from celery_pgbeat.cli.command_line.completion import zone_names
from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.chosen import choose, spoken, with_names
from celery_pgbeat.cli.options.confirmation import confirm, is_terminal, with_yes
from celery_pgbeat.cli.output.times import instant, with_utc
from celery_pgbeat.cli.output.values import as_json, number, print_result, text

if TYPE_CHECKING:
    from celery_pgbeat.postgres.admin_queries import AdminQueries

WAIT = 10.0  # seconds for the beats, which plan a thousand rows and more in each
LOOK_EVERY = 0.2  # seconds
SHOWN = 5  # moved rows that are named


@click.command(cls=ApiCommand)
@with_names
@click.option(
    "--zone",
    metavar="ZONE",
    help="Only rows that name this time zone, as theirs, in their schedule or in a blackout window.",
    shell_complete=zone_names,
)
@with_yes
@with_utc
@as_json
def replan(names: tuple[str, ...], every: bool, zone: str | None, yes: bool, as_json: bool) -> None:
    """Have beats plan next runs again, after a change of their time zone tables, and say which have moved.

    The instant of a next run is stored, and stays when a country changes its clocks. First upgrade the package tzdata
    (or the system's tables) and restart all beats: they plan by the tables that they have loaded.

    NAME may be a pattern, see "Names and patterns" in docs/shell.md. Without names, --zone means all rows of that zone.
    Rows that read as their schedules say stay as they are. So do finished rows, and a next run that SQL has set.
    Nothing is lost or sent twice: a run that is due already is sent as it was planned, or at its later time.

    Exit codes: 0 planned again; 1 a name is unknown, a pattern matches nothing, the question was not answered with yes,
    or no beat has planned all of them within 10 s: they keep their next runs until one does.
    """
    from celery_pgbeat.schedules.wallclock.zones import zone_named

    target = Target.current()
    operators = target.operators()
    known = None if zone is None else zone_named(zone).name
    meant = None if every or (zone is not None and not names) else choose(names, every).names
    concerned = operators.to_replan(meant, known)
    if len(concerned) > 1 and not yes:
        if not is_terminal():
            raise Failure(f"This would plan {spoken(concerned)} again: add --yes")
        confirm(f"Plan {spoken(concerned)} again?", yes)
    before = operators.planned_runs(concerned)
    done = target.beat().replan(concerned) if concerned else []
    after = _planned(operators, concerned)
    moved = [
        Moved(name, row["next_run_at"], after[name]["next_run_at"])
        for name, row in before.items()
        if name in after and row["last_run_at"] == after[name]["last_run_at"]
        if row["next_run_at"] != after[name]["next_run_at"]
    ]
    waiting = sum(row["is_unplanned"] for row in after.values())
    planned = [name for name in done if name in after and not after[name]["is_unplanned"]]
    result = {"replanned": list(done), "moved": [move._asdict() for move in moved], "still_to_be_planned": waiting}
    if as_json or planned or not waiting:
        print_result(result, _in_words(planned, moved), as_json)
    if waiting:
        raise Failure(
            f"{number(waiting, 'row')} not planned yet: is a beat running? A row keeps its next run until then. "
            "See: celery-pgbeat nodes"
        )


class Moved(NamedTuple):
    """A row whose next run has another instant now; None for no next run."""

    name: str
    before: datetime | None
    after: datetime | None


def _planned(operators: AdminQueries, names: list[str]) -> dict[str, Any]:
    """Return the rows when beats have planned them, or as they are when the wait is over."""
    ends_at = time.monotonic() + WAIT
    while True:
        rows = operators.planned_runs(names)
        if time.monotonic() > ends_at or not any(row["is_unplanned"] for row in rows.values()):
            return rows
        time.sleep(LOOK_EVERY)


def _in_words(planned: list[str], moved: list[Moved]) -> str:
    if not planned:
        return "Nothing to plan again: no such row has a next run that a beat has planned."
    lines = [f"Planned {spoken(planned)} again. {number(len(moved), 'next run')} moved{':' if moved else '.'}"]
    lines += [f"  {text(move.name)}: {instant(move.before)} -> {instant(move.after)}" for move in moved[:SHOWN]]
    if len(moved) > SHOWN:
        lines.append(f"  and {len(moved) - SHOWN:,} more: celery-pgbeat upcoming")
    return "\n".join(lines)
