"""What `add` and `edit` print of the row that they have written: what was filled in, and its next run in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from celery_pgbeat.api.graph import after_in_words
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.times import on_the_clock
from celery_pgbeat.cli.output.values import text
from celery_pgbeat.cli.upcoming import why_none

if TYPE_CHECKING:
    from celery_pgbeat.api import PeriodicTask

NAMED_DEFAULTS = ("overlap", "catchup", "on_lost", "tracking")  # those that decide what happens to a job


class NextRun(NamedTuple):
    """The next run of a row.

    Attributes:
        zone: on whose clock it runs; None while that is not known.
        instant: when it is; None for no run.
        is_known: whether its schedule, and those of the tasks before it, have a zone.
    """

    zone: str | None
    instant: datetime | None
    is_known: bool = True


def next_run_of(row: PeriodicTask) -> NextRun:
    """Return the next run of a row, planned or expected."""
    from celery_pgbeat.errors import UnknownTimezone
    from celery_pgbeat.schedules import own_zone

    target = Target.current()
    zone = (own_zone(row.schedule) if row.schedule else None) or row.timezone or target.app_timezone
    try:
        runs = target.beat().upcoming(row.name, 1)
    except UnknownTimezone:
        return NextRun(None, None, is_known=False)
    return NextRun(zone, runs[0].next_run_at if runs else None)


def print_next_run(row: PeriodicTask) -> None:
    """Print the next run of the row, or why there is none."""
    if row.schedule is None and row.next_run_at is None and row.after is None:
        click.echo("The next run: none, because it has no schedule; `trigger` starts it.")
        return
    zone, instant, is_known = next_run_of(row)
    if instant is not None:
        is_expected = row.schedule is None and row.next_run_at is None and row.after is not None
        expected = f", expected {text(after_in_words(row.after or ()))}" if is_expected else ""
        click.echo(f"The next run: {on_the_clock(instant, zone or 'UTC')} ({zone or 'UTC'}){expected}")
    elif not is_known:
        click.echo("The next run: known once the first beat has filled in the app's zone.")
    else:
        statuses = Target.current().operators().statuses_of([row.name])
        click.echo(f"The next run: none, {why_none(row, str(statuses.get(row.name, {}).get('state')))}.")


def print_filled_in(row: PeriodicTask, given: Mapping[str, Any]) -> None:
    """Print the schedule in words, and what the row has where its author gave nothing: the zone, defaults by name."""
    from celery_pgbeat.declare.columns import DEFAULTS
    from celery_pgbeat.schedules import needs_zone, parse

    if row.schedule is not None:
        click.echo(f"The schedule: {parse(row.schedule, name=row.name, dst=row.dst).describe()}")
    if not given.get("timezone") and row.schedule is not None and needs_zone(row.schedule):
        app_zone = Target.current().app_timezone
        if row.timezone is not None:
            click.echo(f"The timezone: {row.timezone}, which a beat has filled in.")
        elif app_zone is not None:
            click.echo(f"The timezone: {app_zone}, that of the app; the first beat fills it in.")
        else:
            click.echo("The timezone: that of the app; the first beat fills it in.")
    defaults = [f"{name} {DEFAULTS[name]}" for name in NAMED_DEFAULTS if name not in given]
    if defaults:
        click.echo(f"By default: {', '.join(defaults)}")
