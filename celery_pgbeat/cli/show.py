"""`show`: one periodic task, its state first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.list import next_run_of, status_as_dict
from celery_pgbeat.cli.output.job_columns import JobAt, job_as_dict, node_in_short
from celery_pgbeat.cli.output.times import duration, from_now, instant, localised, with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, print_pairs, row_as_dict, text

if TYPE_CHECKING:
    from celery_pgbeat.api import Change, PeriodicTask, PgBeat

# What people do not ask for: it is in other lines, or only beats and triggers use it.
IN_OTHER_LINES = {"name", "task", "schedule", "timezone", "next_run_at", "problem", "enabled"}
INTERNAL = {"group_paused", "planned_for", "last_run_at", "marked_by", "marked_at", "revision", "planned_revision"}


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@click.option("--all", "with_all", is_flag=True, help="Show the internal columns too, and those at their default.")
@click.option("--reveal", is_flag=True, help="Show the arguments of a sensitive row too.")
@with_utc
@as_json
def show(name: str, with_all: bool, reveal: bool, as_json: bool) -> None:
    """Show one periodic task: its state, what it runs and when, its last job, and the columns not at their default.

    The arguments of a sensitive one are shown only with --reveal.
    """
    from celery_pgbeat.api.rows import read_row
    from celery_pgbeat.columns_of_job import Job

    target = Target.current()
    row, operators = target.beat().get(name), target.operators()
    status = status_as_dict(operators.statuses_of([name]).get(name, {}))
    jobs = [JobAt(read_row(Job, found), operators.clock()) for found in operators.page_of_jobs(limit=1, name=name)]
    description = in_words(row, target.timezone)
    columns = row_as_dict(row, reveal=reveal)
    if as_json:
        last = job_as_dict(jobs[0]) if jobs else None
        print_json({**columns, **status, "description": description, "last_job": last})
        return
    now = jobs[0].now if jobs else operators.clock()
    changes = target.beat().changes(name, kind="periodic_task", limit=1)
    pairs = [
        *_summary(row, status, description, now),
        ("note", _note(target.beat(), row)),
        *_last_job(jobs[0] if jobs else None),
        *_last_change(changes, now),
        ("problem", row.problem),
    ]
    others = {column: value for column, value in columns.items() if with_all or _is_set(column, value)}
    pairs += [(column, value) for column, value in others.items() if column not in IN_OTHER_LINES]
    print_pairs([(label, text(value)) for label, value in pairs if value is not None])


def in_words(row: PeriodicTask, timezone: str) -> str | None:
    """Return when a periodic task runs, in words; None if it has no schedule, or one that cannot be read."""
    from celery_pgbeat.errors import InvalidSchedule
    from celery_pgbeat.schedules import parse

    if row.schedule is None:
        return None
    anchor = row.anchor or row.start_at or row.created_at
    try:
        return parse(row.schedule, row.timezone or timezone, name=row.name, dst=row.dst, anchor=anchor).describe()
    except InvalidSchedule:
        return None


def _summary(
    row: PeriodicTask, status: Mapping[str, Any], description: str | None, now: datetime
) -> list[tuple[str, Any]]:
    return [
        ("state", localised(status["state"])),
        ("name", row.name),
        ("task", row.task),
        ("runs", description),
        ("schedule", row.schedule),
        ("timezone", row.timezone),
        ("next run", _when(next_run_of(row, now), now) or ("none while it is paused" if row.next_run_at else None)),
    ]


def _note(beat: PgBeat, row: PeriodicTask) -> str | None:
    """Return that the next run is not the one that the schedule says by the time zone tables here."""
    from celery_pgbeat.api.ahead import OUT_OF_DATE
    from celery_pgbeat.errors import InvalidSchedule

    if row.schedule is None or row.next_run_at is None:
        return None
    try:
        notes = [run.note or "" for run in beat.upcoming(row.name, limit=1)]
    except InvalidSchedule:  # its zone may be known to beats alone
        return None
    return next((localised(note) for note in notes if note.startswith(OUT_OF_DATE)), None)


def _last_job(last: JobAt | None) -> list[tuple[str, Any]]:
    if last is None:
        return [("last job", "none yet")]
    job = last.job
    parts = [last.state, f"scheduled for {_when(job.scheduled_for, last.now)}"]
    if last.duration is not None:
        parts.append(f"{'ran' if job.finished_at else 'has run'} {duration(last.duration)}")
    if job.worker is not None:
        parts.append(f"on {node_in_short(job.worker)}")
    return [("last job", f"{', '.join(parts)}: {job.id}"), ("error", job.error)]


def _last_change(changes: Sequence[Change], now: datetime) -> list[tuple[str, Any]]:
    return [("last change", f"{one.action} by {one.who}, {_when(one.at, now)} (change {one.id})") for one in changes]


def _when(value: datetime | None, now: datetime) -> str | None:
    return None if value is None else f"{instant(value)} ({from_now(value, now)})"


def _is_set(column: str, value: Any) -> bool:
    """Tell whether a column is neither internal nor at its default."""
    from celery_pgbeat.columns import PUBLIC

    default = PUBLIC[column].default
    if column in INTERNAL or value in (None, [], {}, False, 0):
        return False
    return default is None or value != default or column == "managed_by"
