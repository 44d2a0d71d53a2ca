"""The first run of a new, edited or resumed row."""

from __future__ import annotations

from datetime import datetime, timedelta

from celery_pgbeat.schedules import Schedule

from .due_times import DueTimes, due_times_of
from .types import LONGEST_PICKUP, MICROSECOND, Planned, Rules, Unplanned

FURTHEST_SHIFT = timedelta(hours=26)  # a country may change the side of the date line
MOST_COMPARED = 12  # occurrences of each kind, for the sake of a table of many frequent rows


def plan(row: Unplanned, rules: Rules) -> Planned:
    """Plan the first run, see `first_of`.

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
        pickup_deadline=LONGEST_PICKUP if ended else due_times.pickup_after(first, rules),
        replaces=row.planned_for,
    )


def first_of(row: Unplanned, due_times: DueTimes) -> datetime | None:
    """Return the first occurrence: the next one after the row was defined, changed or resumed, with three exceptions.

    An occurrence that a named window held back when that window was changed is due when the window, as it is now, has
    closed. If code has changed the times, the newest occurrence of the new times since the last run is due. And a row
    that is planned again while it has a next run (`replan`) keeps that run, see `as_it_reads_now`.
    """
    if row.held_back is not None:
        return row.held_back
    if row.planned_for is not None:
        return as_it_reads_now(row, row.planned_for, due_times)
    return _overdue(row, due_times) or due_times.following(row.counts_after)


def as_it_reads_now(row: Unplanned, planned_for: datetime, due_times: DueTimes) -> datetime | None:
    """Return when an undecided occurrence is by the time zone tables that this process has; None: never.

    The old tables are no longer known, but some of their occurrences are: this one, the last one decided, and what was
    planned ahead. The new tables have moved them all alike, so it is the shift by which most of them are occurrences
    again; of several the smallest, and the earlier one.

    Counted from now instead, a run that was sent at nine by the old tables could be sent again at nine by the new ones,
    and one that was to come at nine could be lost, because it is past nine by the new ones.

    What has come due already is only ever put off: beats decide it as it was planned.
    """
    schedule = due_times.schedule
    if schedule is None:
        return planned_for
    later = [one for one in row.planned_ahead or () if one > planned_for]
    known = [planned_for, *later[:MOST_COMPARED]]
    decided = row.counts_after
    if row.last_run_at is not None:
        known.append(row.last_run_at)
        decided = max(decided, row.last_run_at)
    if all(map(schedule.matches, known)):
        return planned_for

    def fit(instant: datetime) -> tuple[int, timedelta]:
        shift = instant - planned_for
        return -sum(schedule.matches(one + shift) for one in known), abs(shift)

    found = min(_near(schedule, planned_for), key=fit, default=planned_for)
    if _has_come(row, planned_for) and (
        found < planned_for or (due_times.defers and due_times.is_blacked_out(planned_for))
    ):
        return planned_for
    after = max(found - MICROSECOND, decided)
    return due_times.following(after) if schedule.next(after) else planned_for


def _near(schedule: Schedule, instant: datetime) -> list[datetime]:
    """Return the occurrences around an instant, as far as a change of a zone may have moved them, in order."""
    earlier: list[datetime] = []
    before = schedule.previous(instant)
    while before is not None and instant - before <= FURTHEST_SHIFT and len(earlier) < MOST_COMPARED:
        earlier.append(before)
        before = schedule.previous(before)
    later = schedule.occurrences(instant - MICROSECOND, instant + FURTHEST_SHIFT, MOST_COMPARED)
    return [*reversed(earlier), *later]


def _has_come(row: Unplanned, planned_for: datetime) -> bool:
    return row.now is not None and planned_for <= row.now


def _overdue(row: Unplanned, due_times: DueTimes) -> datetime | None:
    """Return the newest occurrence between the last run and the change of the times by code, if there is one.

    Only one, whatever their number: none of them was promised. A single date in the past is not run.
    """
    if row.judged_from is None or due_times.schedule is None or not due_times.schedule.kind_info.repeats:
        return None
    since = row.judged_from if row.start_at is None else max(row.judged_from, row.start_at - MICROSECOND)
    newest = due_times.last_until(row.planned_from)
    return newest if newest is not None and newest > since else None
