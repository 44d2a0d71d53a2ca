"""The first run of a new, edited or resumed row."""

from __future__ import annotations

from datetime import datetime

from .due_times import DueTimes, due_times_of, pickup_after
from .types import LONGEST_PICKUP, MICROSECOND, Planned, Rules, Unplanned


def plan(row: Unplanned, rules: Rules) -> Planned:
    """Plan the first run, see `first_of`. The result does not depend on the time at which a beat plans the row.

    Raises:
        InvalidSchedule: no run of the row can be planned.
    """
    due_times = due_times_of(row, rules)
    ended = due_times.schedule is None or (row.max_runs is not None and row.run_count >= row.max_runs)
    first = None if ended else first_of(row, due_times)
    return Planned(
        name=row.name,
        revision=row.revision,
        planned_from=row.planned_from,
        next_run_at=None if first is None else due_times.due_at(first),
        planned_for=first,
        pickup_deadline=LONGEST_PICKUP if ended else pickup_after(due_times, first, rules),
    )


def first_of(row: Unplanned, due_times: DueTimes) -> datetime | None:
    """Return the first occurrence: the next one after the row was defined, changed or resumed, with two exceptions.

    An occurrence that a named window held back when that window was changed is due when the window, as it is now, has
    closed. And if code has changed the times, the newest occurrence of the new times since the last run is due.
    """
    return row.held_back or _overdue(row, due_times) or due_times.following(row.counts_after)


def _overdue(row: Unplanned, due_times: DueTimes) -> datetime | None:
    """Return the newest occurrence between the last run and the change of the times by code, if there is one.

    Only one, whatever their number: none of them was promised. A single date in the past is not run.
    """
    if row.judged_from is None or due_times.schedule is None or not due_times.schedule.kind_info.repeats:
        return None
    since = row.judged_from if row.start_at is None else max(row.judged_from, row.start_at - MICROSECOND)
    newest = due_times.last_until(row.planned_from)
    return newest if newest is not None and newest > since else None
