"""`top`: beats, workers, jobs and what is overdue, redrawn every few seconds. It only reads."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.keys import quit_key
from celery_pgbeat.cli.output.screen import Screen
from celery_pgbeat.cli.output.terminal import cut, terminal_width
from celery_pgbeat.cli.output.times import with_utc
from celery_pgbeat.cli.output.values import as_json, print_json

if TYPE_CHECKING:
    from celery_pgbeat.cli.top.frame import Frame

HINT = "q quits"
SECONDS = 10.0  # over which the rates are computed


@click.command(cls=ApiCommand)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two updates.",
)
@click.option(
    "--rows", type=click.IntRange(min=1), default=5, show_default=True, help="How many rows each list has at most."
)
@click.option("--once", is_flag=True, help="Print once, and end.")
@with_utc
@as_json
def top(interval: float, rows: int, once: bool, as_json: bool) -> None:
    """Watch beats and workers, jobs per second, what is overdue, the longest runs and problems, until you press q.

    Without a terminal it prints a line every few seconds, until Ctrl-C. --json prints once. While the database is away
    it waits.

    Exit codes: 0 ended; 3 the database is out of reach (with --once or --json, or at the start).
    """
    target = Target.current()
    frame = look(target, rows)
    if as_json:
        print_json(frame.as_dict())
    elif once:
        width = terminal_width()
        for whole, colour in frame.table(width):
            line = whole if width is None else cut(whole, width)
            click.echo(click.style(line, fg=colour) if colour else line)
    else:
        watch(target, frame, rows, interval)


def look(target: Target, rows: int) -> Frame:
    """Read everything that one frame shows."""
    from celery_pgbeat.cli.top.frame import Frame

    operators = target.operators()
    return Frame(
        where=f"{operators.database.shown_url}, schema {operators.database.schema}",
        seconds=SECONDS,
        activity=operators.activity(SECONDS),
        nodes=operators.nodes(),
        overdue=operators.latest_due(rows),
        running=operators.longest_running(rows),
        problems=operators.problems(rows),
    )


def watch(target: Target, frame: Frame, rows: int, interval: float) -> None:
    """Update the screen until q or Ctrl-C."""
    from celery_pgbeat.errors import DatabaseUnavailable

    screen = Screen()
    with suppress(KeyboardInterrupt), quit_key() as quits:
        screen.draw(replace(frame, hint=HINT))
        while not quits(interval):
            try:
                frame = look(target, rows)
            except DatabaseUnavailable as error:
                screen.say(str(error), red=True)
            screen.draw(replace(frame, hint=HINT))
    screen.leave()
