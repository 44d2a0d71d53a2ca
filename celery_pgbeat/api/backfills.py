"""Backfills: checks their arguments, and computes a preview by the same rules as the beats."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from celery_pgbeat.api.rows import BackfillPreview
from celery_pgbeat.api.zones import zone_of
from celery_pgbeat.choices import BackfillMode
from celery_pgbeat.declare.columns import read_choice, read_instant
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.planning import NOTHING, History, PlanningRow, Rules, range_of
from celery_pgbeat.planning.backfill import MODES
from celery_pgbeat.postgres.api_queries import ApiQueries
from celery_pgbeat.postgres.beat_queries import as_history
from celery_pgbeat.schedules import needs_zone, parse
from celery_pgbeat.schedules.wallclock.zones import zone_named
from celery_pgbeat.texts.safe_text import in_short

SHOWN = 10  # occurrences that a preview lists
PAGE = 10_000  # jobs of the history that are read per statement
MOST_ACTIVE = 1000
MICROSECOND = timedelta(microseconds=1)


def read_ends(since: Any, until: Any) -> None:
    """Check that the ends of a range are days or instants.

    Raises:
        InvalidPeriodicTask: one is neither, or is out of range.
    """
    for field, value in (("since", since), ("until", until)):
        if isinstance(value, datetime):
            read_instant(field, value)
        elif not isinstance(value, date):
            raise InvalidPeriodicTask(f"{field} is {in_short(value)}, neither a date nor a datetime")


def range_in(row: Mapping[str, Any], since: date, until: date, app_timezone: str | None) -> tuple[datetime, datetime]:
    """Return the ends of a range in UTC.

    A date is that day in the row's zone, the whole of it; if it is today, up to now. A naive datetime is read on the
    clocks of the row's zone.

    Raises:
        InvalidPeriodicTask: an end is out of range.
        UnknownTimezone: the row's zone is needed, and no beat has filled it in yet.
    """
    begin = _instant(row, "since", since, app_timezone)
    end = _instant(row, "until", until, app_timezone)
    if not isinstance(until, datetime) and end <= row["now"]:
        after = _instant(row, "until", until + timedelta(days=1), app_timezone) - MICROSECOND
        end = min(after, row["now"].astimezone(timezone.utc))
    return begin, end


def _instant(row: Mapping[str, Any], field: str, value: date, app_timezone: str | None) -> datetime:
    """Return an instant, or the first one of a day, in UTC."""
    moment = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    if moment.tzinfo is None:
        # No occurrence of a row without a schedule depends on it; that is refused later.
        zone = "UTC" if row["schedule"] is None else zone_of(row, app_timezone)
        moment = moment.replace(tzinfo=ZoneInfo(zone_named(zone).name))
    return read_instant(field, moment).astimezone(timezone.utc)


def check_terms(mode: Any, max_active: Any) -> None:
    """Check the mode and the number of jobs before they are sent to Postgres.

    Raises:
        InvalidPeriodicTask: one is wrong; names the value.
    """
    read_choice("mode", mode, MODES)
    if isinstance(max_active, bool) or not isinstance(max_active, int) or not 1 <= max_active <= MOST_ACTIVE:
        raise InvalidPeriodicTask(f"max_active is {max_active!r}: it is a whole number from 1 to {MOST_ACTIVE}")


def refuse_empty(row: Mapping[str, Any], since: datetime, until: datetime, app_timezone: str | None) -> None:
    """Refuse a range that ends before the first occurrence of an interval.

    Such a schedule begins at its anchor, and without one where it was set: a person who fills in last month would get
    nothing, and not know why.

    Raises:
        InvalidPeriodicTask: it does; names where the schedule begins.
    """
    text, zone = row["schedule"], row["timezone"] or app_timezone
    with suppress(InvalidSchedule):  # the beat will say so
        if text is None or not since <= until <= row["now"] or (zone is None and needs_zone(text)):
            return
        schedule = parse(text, zone or "UTC", name=row["name"], dst=row["dst"], anchor=row["anchor"])
        if schedule.anchor is None or schedule.previous(until + MICROSECOND) is not None:
            return
        raise InvalidPeriodicTask(
            f"{row['name']!r} has no occurrence up to {until.isoformat()}: its schedule begins at "
            f"{schedule.anchor.isoformat()}, its anchor, else its start_at, else when it was set; give the row an "
            f"earlier anchor"
        )


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
    chosen = range_of(definition, since, until, mode, rules)
    undecided_from = record["undecided_from"]
    end = chosen.end if undecided_from is None else min(chosen.end, undecided_from - MICROSECOND)
    total, undecided = chosen.count(), chosen.due_times.count(max(end, chosen.begin), chosen.end)
    first: list[datetime] = []
    to_submit, after = 0, chosen.begin
    while after < end:
        history = _read_history(queries, connection, definition.name, after, end) if chosen.asks_history else NOTHING
        until_known = min(end, history.until or end)
        wanted = chosen.count_wanted(after, history, until_known)
        if wanted and len(first) < SHOWN:
            first += chosen.step(after, history, SHOWN - len(first), undecided_from).jobs
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
