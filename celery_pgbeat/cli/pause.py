"""`pause`: pause periodic tasks."""

from __future__ import annotations

from datetime import datetime

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.chosen import choose, left_alone, one_name, spoken, with_names
from celery_pgbeat.cli.options.confirmation import with_yes
from celery_pgbeat.cli.options.instants import read_coming_instant
from celery_pgbeat.cli.output.times import instant, with_utc
from celery_pgbeat.cli.output.values import as_json, print_result

ALREADY = "paused already"


@click.command(cls=ApiCommand)
@with_names
@click.option("--reason", metavar="TEXT", help="The reason, shown in `list` and `explain`.")
@click.option(
    "--until",
    metavar="INSTANT",
    callback=read_coming_instant,
    help="When they resume by themselves, such as 2d (from now on), tomorrow or 2026-12-24T18:00; without an offset in "
    "the app's zone, without an app in UTC.",
)
@with_yes
@with_utc
@as_json
def pause(
    names: tuple[str, ...], every: bool, reason: str | None, until: datetime | None, yes: bool, as_json: bool
) -> None:
    """Pause periodic tasks. Messages already at the broker still run.

    NAME may be a pattern, see "Names and patterns" in docs/shell.md. A pattern or --all leaves paused rows as they are.

    Exit codes: 0 paused; 1 a name is unknown, a pattern matches nothing, or the question was not answered with yes:
    nothing was paused.
    """
    beat = Target.current().beat()
    if (name := one_name(names, every)) is not None:
        row = beat.pause(name, reason, until)
        print_result(row, f"Paused {name!r} until {_end(row.paused_until)}.", as_json)
        return
    chosen = choose(names, every, lambda row: row["enabled"], ALREADY)
    chosen.confirm("Pause", yes)
    paused = beat.pause_many(chosen.names, reason, until, missing_ok=True)
    end = f" until {_end(until, 'it' if len(paused) == 1 else 'them')}" if paused else ""
    print_result({"paused": paused}, f"Paused {spoken(paused)}{end}.{left_alone(chosen, ALREADY)}", as_json)


def _end(until: datetime | None, those: str = "it") -> str:
    return f"you resume {those}" if until is None else instant(until)
