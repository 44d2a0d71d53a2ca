"""Backfills: checks their arguments, and computes a preview by the same rules as the beats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from celery_pgbeat.api.rows import BackfillPreview
from celery_pgbeat.choices import BackfillMode
from celery_pgbeat.declare.columns import read_choice, read_instant
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownBackfill
from celery_pgbeat.planning import NOTHING, History, PlanningRow, Rules, range_of
from celery_pgbeat.planning.backfill import MODES
from celery_pgbeat.postgres.api_queries import ApiQueries
from celery_pgbeat.postgres.beat_queries import as_history

SHOWN = 10  # occurrences that a preview lists
PAGE = 10_000  # jobs of the history that are read per statement
MOST_ACTIVE = 1000
MICROSECOND = timedelta(microseconds=1)


def read_range(since: Any, until: Any) -> tuple[datetime, datetime]:
    """Return the ends of a range in UTC.

    Raises:
        InvalidPeriodicTask: one is not a datetime, has no zone, or is out of range.
    """
    ends = []
    for field, value in (("since", since), ("until", until)):
        if read_instant(field, value).tzinfo is None:
            raise InvalidPeriodicTask(
                f"{field} is {value!r}, without a zone: a row and its app may have different ones. Give it one, "
                f"such as {value!r}.replace(tzinfo=timezone.utc)"
            )
        ends.append(value.astimezone(timezone.utc))
    return ends[0], ends[1]


def check_terms(mode: Any, max_active: Any) -> None:
    """Check the mode and the number of jobs before they are sent to Postgres.

    Raises:
        InvalidPeriodicTask: one is wrong; names the value.
    """
    read_choice("mode", mode, MODES)
    if isinstance(max_active, bool) or not isinstance(max_active, int) or not 1 <= max_active <= MOST_ACTIVE:
        raise InvalidPeriodicTask(f"max_active is {max_active!r}: it is a whole number from 1 to {MOST_ACTIVE}")


def read_backfill_id(id: UUID | str) -> UUID:
    """Return the id of a backfill.

    Raises:
        UnknownBackfill: it is no UUID.
    """
    try:
        return UUID(str(id))
    except ValueError:
        raise UnknownBackfill(f"There is no backfill {id!r}: an id is a UUID, such as backfills() returns") from None


def preview(
    queries: ApiQueries,
    connection: Any,
    row: Mapping[str, Any],
    rules: Rules,
    since: datetime,
    until: datetime,
    mode: BackfillMode,
    max_active: int,
) -> BackfillPreview:
    """Return what a backfill would do if it began now, of a row that `preview_backfill.sql` has read.

    Raises:
        InvalidPeriodicTask: an argument is wrong; the same checks as in SQL.
        InvalidSchedule: the row cannot be planned.
    """
    record = {column: _in_utc(value) for column, value in row.items()}
    _check(record, since, until)
    definition = PlanningRow(**{**{field.name: record[field.name] for field in fields(PlanningRow)}, "windows": {}})
    span = range_of(definition, since, until, mode, rules)
    undecided_from = record["undecided_from"]
    end = span.end if undecided_from is None else min(span.end, undecided_from - MICROSECOND)
    total, undecided = span.count(), span.due_times.count(max(end, span.begin), span.end)
    first: list[datetime] = []
    to_submit, after = 0, span.begin
    while after < end:
        history = _read_history(queries, connection, definition.name, after, end) if span.asks_history else NOTHING
        until_known = min(end, history.until or end)
        wanted = span.count_wanted(after, history, until_known)
        if wanted and len(first) < SHOWN:
            first += span.step(after, history, SHOWN - len(first), undecided_from).jobs
        to_submit += wanted
        after = until_known
    return BackfillPreview(
        periodic_task=definition.name,
        since=since,
        until=until,
        mode=mode,
        max_active=max_active,
        total=total,
        to_submit=to_submit,
        skipped=total - undecided - to_submit,
        undecided=undecided,
        first=tuple(first),
        history_since=record["history_since"],
    )


def _read_history(queries: ApiQueries, connection: Any, name: str, after: datetime, until: datetime) -> History:
    rows = queries.run("backfill_history", connection, periodic_task=name, after=after, until=until, most=PAGE)
    return as_history([(row["scheduled_for"], row["failed"], row["known_until"]) for row in rows])


def _check(record: Mapping[str, Any], since: datetime, until: datetime) -> None:
    """Refuse the ranges that backfill() in SQL refuses, with the same messages."""
    wrong = None
    if record["schedule"] is None:
        wrong = f"{record['name']!r} has no schedule, so no occurrences to be filled in: trigger() starts a job of it"
    elif since > until:
        wrong = f"since is {since.isoformat()}, later than until, {until.isoformat()}: give the earlier end first"
    elif until > record["now"]:
        wrong = f"until is {until.isoformat()}, which is still to come: end the range at {record['now'].isoformat()}"
    if wrong is not None:
        raise InvalidPeriodicTask(wrong)


def _in_utc(value: Any) -> Any:
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
