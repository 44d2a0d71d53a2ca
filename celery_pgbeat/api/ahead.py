"""Computes the coming runs of one row: the planned one, and those that planning will add.

Nothing is decided here. A pause, an edit, an outage or a job that blocks the row changes the runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from itertools import chain, dropwhile, islice
from typing import Any

from celery_pgbeat.api.rows import Upcoming
from celery_pgbeat.planning import DueTimes, Planned, Rules, Unplanned, due_times_of, first_of, plan
from celery_pgbeat.schedules import dst_note

MICROSECOND = timedelta(microseconds=1)
LONGEST_SEARCH = 1_000  # blackout windows that are skipped in a row before the search ends

OVERDUE = "overdue"
NOT_PLANNED = "next_run_at was set, not planned"
SPREAD = "spread by the jitter"
OUT_OF_DATE = "by the time zone tables here it is at another time"
HELD_BACK = "held back by a blackout window"


def coming_runs(row: Mapping[str, Any], rules: Rules, after: datetime | None = None) -> Iterator[Upcoming]:
    """Iterate over the coming runs of a row that `preview_row.sql` has read; a paused row has none.

    Args:
        row: as it was read.
        rules: those of the beats.
        after: only runs later than this; None for all.

    Raises:
        InvalidSchedule: the row cannot be planned.
    """
    record = {column: in_utc(value) for column, value in row.items()}
    record["windows"] = json.loads(record["windows"] or "{}")
    if not record["enabled"] or record["problem"] is not None:
        return iter(())
    definition = _definition(record)
    line = due_times_of(definition, rules)
    leap_to = after if definition.max_runs is None else None  # otherwise runs before `after` have to be counted
    if record["planned_revision"] != definition.revision:
        runs = _from(line, first_of(definition, line), leap_to)
    elif record["next_run_at"] is not None:
        runs = _from_stored(line, record["next_run_at"], record["planned_for"], record["now"], leap_to)
        if (anew := _planned_anew(record, definition, rules)) is not None:
            runs = chain([_marked_as_out_of_date(next(runs), anew.next_run_at)], runs)
    else:
        runs = iter(())
    left = islice(runs, None if definition.max_runs is None else max(definition.max_runs - definition.run_count, 0))
    return left if after is None else dropwhile(lambda run: run.next_run_at <= after, left)


def planned_anew(row: Mapping[str, Any], rules: Rules) -> Planned | None:
    """Return what a beat with the time zone tables of this process would plan; None if the stored next run is that.

    Instants that a beat has stored stay as they are when a country changes its clocks: `replan` has them planned again.
    None too for a row that is not planned, or that is due.

    Raises:
        InvalidSchedule: the row cannot be planned.
    """
    record = {column: in_utc(value) for column, value in row.items()}
    record["windows"] = json.loads(record["windows"] or "{}")
    return _planned_anew(record, _definition(record), rules)


def _definition(record: Mapping[str, Any]) -> Unplanned:
    return Unplanned(**{column.name: record[column.name] for column in fields(Unplanned)})


def _planned_anew(record: Mapping[str, Any], definition: Unplanned, rules: Rules) -> Planned | None:
    if record["next_run_at"] is None or definition.planned_for is None or definition.planned_for <= record["now"]:
        return None
    anew = plan(definition, rules)
    return None if anew.next_run_at == record["next_run_at"] else anew


def _marked_as_out_of_date(run: Upcoming, right: datetime | None) -> Upcoming:
    return replace(run, note=f"{OUT_OF_DATE}: {'never' if right is None else shown(right)}; `replan` moves it")


def shown(instant: datetime) -> str:
    """Return an instant in UTC as the sentences of Postgres have it."""
    return f"{instant.astimezone(timezone.utc):%Y-%m-%d %H:%M:%SZ}"


def _from_stored(
    line: DueTimes, due: datetime, planned_for: datetime | None, now: datetime, leap_to: datetime | None
) -> Iterator[Upcoming]:
    """Iterate over the runs from the stored next run on."""
    if planned_for is not None and due > now and due == line.due_at(planned_for):
        yield from _from(line, planned_for, leap_to)
        return
    start = max(due, now)
    free = line.next_allowed(start)
    if line.defers or not line.is_blacked_out(due):
        shown = due if free == start else free
        yield Upcoming(line.name, shown, planned_for, _note_of_stored(shown, due, planned_for, now))
    # Earlier due occurrences are decided together with it. A run set by SQL also replaces one due at that instant.
    decided = line.last_due_before(planned_for or due, free if planned_for is not None else free + MICROSECOND)
    yield from _from(line, line.following(decided), leap_to)


def _note_of_stored(shown: datetime, due: datetime, planned_for: datetime | None, now: datetime) -> str:
    if shown <= now:
        return OVERDUE
    return NOT_PLANNED if planned_for is None and shown == due else HELD_BACK


def _from(line: DueTimes, nominal: datetime | None, leap_to: datetime | None = None) -> Iterator[Upcoming]:
    """Iterate over the runs from an occurrence on; without those that are due until `leap_to`."""
    passed = 0
    if nominal is not None and leap_to is not None:
        nominal = line.first_due_from(nominal, leap_to + MICROSECOND)
    while nominal is not None and passed < LONGEST_SEARCH:
        due = line.with_jitter(nominal)
        if not line.is_blacked_out(due):
            passed = 0
            yield Upcoming(line.name, due, nominal, _note(line, nominal, due))
        elif line.defers:
            due = line.next_allowed(due)
            first, nominal = nominal, line.last_due_before(nominal, due + MICROSECOND)
            yield Upcoming(line.name, due, nominal, _note(line, nominal, due, line.count(first, nominal)))
        else:
            passed += 1
            nominal = line.last_due_before(nominal, line.next_allowed(due))
        nominal = line.following(nominal)


def _note(line: DueTimes, nominal: datetime, due: datetime, others: int = 0) -> str | None:
    """Return why a run is due at another time than the schedule's text says, or together with others; else None."""
    notes = []
    if line.schedule is not None and line.schedule.matches(nominal):
        notes.append(dst_note(line.schedule, nominal))
    if others:
        notes.append(f"{HELD_BACK}, together with {others} earlier occurrence{'' if others == 1 else 's'}")
    elif due != line.with_jitter(nominal):
        notes.append(HELD_BACK)
    elif due != nominal:
        notes.append(SPREAD)
    return "; ".join(note for note in notes if note) or None


def in_utc(value: Any) -> Any:
    """Return an instant in UTC; anything else as it is."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
