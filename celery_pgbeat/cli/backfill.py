"""`backfill`: submit the occurrences of a range."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from celery_pgbeat.choices import BackfillMode
from celery_pgbeat.cli.backfills import SUMMARY, as_pairs
from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options import confirmation
from celery_pgbeat.cli.options.choices import Choice
from celery_pgbeat.cli.options.confirmation import with_yes
from celery_pgbeat.cli.options.instants import read_day_or_instant
from celery_pgbeat.cli.output.no_beat import warn_without_beat
from celery_pgbeat.cli.output.progress import Progress
from celery_pgbeat.cli.output.times import instant
from celery_pgbeat.cli.output.values import as_json, number, print_json, print_pairs
from celery_pgbeat.texts.typed_instants import DAYS

if TYPE_CHECKING:
    from celery_pgbeat.api import Backfill, BackfillPreview, PgBeat

MANY = 1_000  # with more jobs than this the command asks first
LOOK_EVERY = 0.5  # seconds between two reads of its progress


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@click.argument("since", metavar="SINCE", callback=read_day_or_instant)
@click.argument("until", metavar="[UNTIL]", required=False, callback=read_day_or_instant)
@click.option(
    "--mode",
    type=Choice(("missing", "failed", "all")),
    default="missing",
    show_default=True,
    help="Which occurrences: those without a job, those that failed, or all of them, again.",
)
@click.option(
    "--max-active",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="How many of its jobs may be under way at once.",
)
@click.option("--dry-run", is_flag=True, help="Show what it would do; write nothing.")
@click.option(
    "--wait", is_flag=True, help="Show the progress, and wait until the backfill and all its jobs have ended."
)
@with_yes
@as_json
def backfill(
    name: str,
    since: date | str,
    until: date | str | None,
    mode: BackfillMode,
    max_active: int,
    dry_run: bool,
    wait: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Submit the occurrences from SINCE to UNTIL, both included, each as a job of its own, the oldest first.

    SINCE and UNTIL are in ISO 8601, or such as yesterday, now or 2d (ago). A date is that day in the row's zone, and
    the whole of the last day is included: 2026-05-01 2026-05-31 is all of May, and 2026-05-01 alone is that day. A time
    without an offset is read in the row's zone too. The command also works for a paused or finished row. It does not
    change the row's next run or its count of runs. Occurrences that are older than pgbeat_retention count as missing.
    If no beat is alive to submit them, a line on stderr says so.

    Exit codes: 0 started, or with --wait finished; 1 refused, or you answered no; with --wait also: the backfill was
    cancelled, could not go on, or you pressed Ctrl-C.
    """
    if until is None:
        if isinstance(since, datetime):
            raise click.UsageError("Missing argument 'UNTIL': only a day needs none.")
        until = since
    target = Target.current()
    beat = target.beat()
    since, until = (_day(end, name, target) if isinstance(end, str) else end for end in (since, until))
    if dry_run:
        _show_preview(beat.backfill(name, since, until, mode, max_active, dry_run=True), as_json)
        return
    if not yes and confirmation.is_terminal():
        jobs = beat.backfill(name, since, until, mode, max_active, dry_run=True).to_submit
        confirmation.confirm(f"Submit {number(jobs, 'job')} of {name!r}?", yes=jobs <= MANY)
    made = beat.backfill(name, since, until, mode, max_active)
    if not as_json:
        click.echo(f"Started a backfill of {name!r}: {made.id}")
    warn_without_beat(beat)
    if wait:
        made = _wait(beat, made)
    if as_json:
        print_json(made)
    elif wait:
        print_pairs(as_pairs(made, SUMMARY))
    if wait and made.state == "cancelled":
        raise Failure(f"The backfill was cancelled before its end{f': {made.problem}' if made.problem else ''}")


def _day(word: str, name: str, target: Target) -> date:
    """Return the day that is meant, on the calendar of the row's zone."""
    from celery_pgbeat.schedules import own_zone

    row = target.beat().get(name)
    zone = (own_zone(row.schedule) if row.schedule else None) or row.timezone or target.timezone
    return target.operators().clock().astimezone(ZoneInfo(zone)).date() + timedelta(days=DAYS[word])


def _wait(beat: PgBeat, made: Backfill) -> Backfill:
    """Wait until the backfill and all its jobs have ended, and return the backfill."""
    progress: Progress | None = None
    try:
        while made.state == "running" or made.active:
            if progress is None and made.total is not None:
                progress = Progress(f"of {made.total} occurrences decided")
            if progress is not None:
                progress(made.submitted + made.skipped)
            time.sleep(LOOK_EVERY)
            (made,) = beat.backfills(id=made.id)
    except KeyboardInterrupt:
        raise Failure(
            f"Stopped waiting; the backfill goes on. To cancel it: `celery-pgbeat backfill cancel {made.id}`"
        ) from None
    finally:
        if progress is not None:
            progress.clear()
    return made


def _show_preview(found: BackfillPreview, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    pairs = [
        ("occurrences", str(found.total)),
        ("to submit", str(found.to_submit)),
        ("skipped", str(found.skipped)),
    ]
    if found.undecided:
        pairs.append(("undecided", f"{found.undecided}: the backfill submits them after the schedule has decided them"))
    pairs.append(("first", _in_short(found.first, found.to_submit)))
    print_pairs(pairs)
    if found.history_since is None or found.history_since > found.since:
        begin = "is empty" if found.history_since is None else f"begins at {instant(found.history_since)}"
        click.echo(f"The history {begin}: older occurrences count as missing.", err=True)


def _in_short(occurrences: Sequence[datetime], count: int) -> str:
    shown = ", ".join(instant(occurrence) for occurrence in occurrences) or "-"
    return f"{shown}, …" if count > len(occurrences) else shown
