"""One periodic task: why it does or does not run, when it runs next, what became of its jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from celery_pgbeat.api.changes import Change
from celery_pgbeat.api.rows import Backfill, Upcoming, read_row
from celery_pgbeat.columns_of_job import Job
from celery_pgbeat.errors import (
    DatabaseBusy,
    InvalidSchedule,
    MissingExtra,
    NotPermitted,
    UnknownPeriodicTask,
    UnknownTimezone,
)
from celery_pgbeat.web.charts import Bar, bars
from celery_pgbeat.web.definition_form import is_of_code
from celery_pgbeat.web.page import Page, Query
from celery_pgbeat.web.pages.definition import SENSITIVE, call_in_words, runs_in_words, settings_of
from celery_pgbeat.web.pages.jobs import Run, runs_of
from celery_pgbeat.web.reading import Reader
from celery_pgbeat.web.words import MARKS, duration, in_full

NEXT = 10  # occurrences that are shown
JOBS = 60  # runs in the chart and the first page of jobs
BACKFILLS = 3  # that are shown
NEIGHBOURS = 40  # tasks before it, and after it, that are shown
CHANGES = 8  # that are shown
LONGEST_VALUE = 120  # characters of a value that was changed


def read_task(reader: Reader, query: Query) -> Page:
    """Read one periodic task."""
    name = query.name()
    queries = reader.queries
    row = queries.look_at(name)
    if row is None:
        raise UnknownPeriodicTask(queries.unknown(name))
    now = queries.clock()
    found = [read_row(Job, job) for job in queries.page_of_jobs(limit=JOBS + 1, name=name)]
    runs = runs_of(found[:JOBS], now)
    upcoming, no_upcoming = _upcoming(reader, name)
    neighbours = queries.neighbours(name, NEIGHBOURS)
    statuses = queries.statuses_of([name, *(one["name"] for one in neighbours)])
    return Page(
        "task",
        name,
        {
            "now": now,
            "task": row,
            "is_of_code": is_of_code(row["managed_by"]),
            "status": statuses[name],
            "explanation": reader.explain(name),
            "runs_in_words": runs_in_words(row, reader.zone),
            "settings": settings_of(row),
            "arguments": _arguments(reader, row),
            "upcoming": upcoming,
            "no_upcoming": no_upcoming,
            "runs": runs,
            "more": found[JOBS - 1] if len(found) > JOBS else None,
            "chart": _chart(runs),
            "before": [statuses[one["name"]] for one in neighbours if one["is_before"]],
            "behind": [statuses[one["name"]] for one in neighbours if not one["is_before"]],
            "most": NEIGHBOURS,
            "backfills": _backfills(reader, name),
            "changes": _changes(reader, name),
        },
    )


def _upcoming(reader: Reader, name: str) -> tuple[Sequence[Upcoming], str | None]:
    try:
        with reader.database.attempt():
            return reader.upcoming(name, NEXT), None
    except (InvalidSchedule, MissingExtra, UnknownTimezone) as error:
        return (), str(error)
    except DatabaseBusy:
        return (), "So many tasks come before it that its next runs took too long to compute."


def _backfills(reader: Reader, name: str) -> Sequence[Backfill]:
    """Return the latest backfills; none if this user of the database may not read them."""
    try:
        with reader.database.attempt():
            return reader.backfills(name, limit=BACKFILLS)
    except NotPermitted:
        return ()


def _changes(reader: Reader, name: str) -> Sequence[tuple[Change, Sequence[tuple[str, str, str]]]]:
    """Return the latest changes, each with its columns, what they were and what they are since.

    None if this user of the database may not read them.
    """
    try:
        with reader.database.attempt():
            found = reader.changes(name, kind="periodic_task", limit=CHANGES)
    except NotPermitted:
        return ()
    return [(one, [(column, *_before_and_after(one, column)) for column in one.columns]) for one in found]


def _before_and_after(change: Change, column: str) -> tuple[str, str]:
    """Return a column as it was and as it is since, in JSON; empty for who may not read it."""
    return _value(change.before, column), _value(change.after, column)


def _value(values: Mapping[str, Any], column: str) -> str:
    if column not in values:
        return ""
    text = json.dumps(values[column], ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _arguments(reader: Reader, row: Mapping[str, Any]) -> str | None:
    """Return the call in words; None if this user of the database may not read it."""
    if row["sensitive"]:
        return SENSITIVE
    try:
        with reader.database.attempt():
            found = reader.queries.arguments_of(row["name"])
    except NotPermitted:
        return None
    return call_in_words(found)


def _chart(runs: Sequence[Run]) -> Markup | None:
    """Draw how long the latest runs took, the latest on the right; a bar for each job."""
    if not any(run.took for run in runs):
        return None
    drawn = []
    for run in reversed(runs):
        says = f"{in_full(run.job.scheduled_for)}: {run.job.state}"
        value = 0.0 if run.took is None else run.took.total_seconds()
        kind = MARKS.get(run.job.state, ("idle", ""))[0]
        drawn.append(Bar(value, f"{says}, {duration(run.took)}" if run.took else says, kind))
    times = sorted(run.took for run in runs if run.took is not None)
    middle, longest = duration(times[len(times) // 2]), duration(times[-1])
    return bars(drawn, f"The latest {len(runs)} jobs: the middle one took {middle}, the longest {longest}")
