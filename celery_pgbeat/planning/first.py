"""The first run of a new, edited or resumed row."""

from __future__ import annotations

from datetime import datetime

from .due_times import DueTimes, due_times_of, pickup_after
from .types import LONGEST_PICKUP, MICROSECOND, Planned, Rules, Unplanned


def plan(row: Unplanned, rules: Rules) -> Planned:
    """Plan the first run: see `first_of`. However late this is asked, the answer is the same.

    Raises:
        InvalidSchedule: the row can never be planned as it is.
    """
    line = due_times_of(row, rules)
    ended = line.schedule is None or (row.max_runs is not None and row.run_count >= row.max_runs)
    first = None if ended else first_of(row, line)
    return Planned(
        name=row.name,
        revision=row.revision,
        planned_from=row.planned_from,
        next_run_at=None if first is None else line.due(first),
        planned_for=first,
        pickup_deadline=LONGEST_PICKUP if ended else pickup_after(line, first, rules),
    )


def first_of(row: Unplanned, line: DueTimes) -> datetime | None:
    """Return the first occurrence: the next one after the definition, never one that is over.

    Two are due though they are over: what a named window held back while it was changed, when the window as it is now
    has closed; and, where code has changed the times, the newest occurrence of the new ones since the last run.
    """
    return row.held_back or _overdue(row, line) or line.following(row.counts_after)


def _overdue(row: Unplanned, line: DueTimes) -> datetime | None:
    """Return the newest occurrence between the last run and the change of the times by code, if there is one.

    One alone, however many there are: none of them was ever promised. A single date that is over is over.
    """
    if row.judged_from is None or line.schedule is None or not line.schedule.kind_info.repeats:
        return None
    since = row.judged_from if row.start_at is None else max(row.judged_from, row.start_at - MICROSECOND)
    newest = line.newest(row.planned_from)
    return newest if newest is not None and newest > since else None
