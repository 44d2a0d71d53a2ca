"""WHAT NOW: one row and the time -> what to submit, what to record, when next. Pure: no I/O, no clock.

The store reads rows and carries out decisions; nothing here knows how. The invariant of the room: every
occurrence between the last one decided and the next run is accounted for in exactly one decision, as the
job that goes out or as one of the counted rest.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, parse

MICROSECOND = timedelta(microseconds=1)
# Jobs get their ids from this namespace, so that a tick submitted again carries the id it had.
JOB_IDS = uuid.UUID("6f9c2f0e-7a35-5d59-9a53-4c1f3d0b1c55")
SHORTEST_PICKUP = timedelta(minutes=15)
LONGEST_PICKUP = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about planning."""

    timezone: str  # of rows that name none: the app's
    on_time: timedelta  # an occurrence decided within this of its due time never asks `catchup`
    pickup_deadline: timedelta | None = None  # None: from the gap to the next occurrence
    min_interval: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The columns of a periodic task that decide its times."""

    name: str
    schedule: str | None
    timezone: str | None
    anchor: datetime
    dst: str
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None
    run_count: int
    revision: int
    planned_from: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Due(Definition):
    """A marked row that is due, as its mark returned it."""

    task: str
    args: str
    kwargs: str
    queue: str | None
    priority: int | None
    options: str
    catchup: str
    catchup_window: timedelta | None
    max_run_time: timedelta | None
    next_run_at: datetime
    planned_for: datetime | None
    last_run_at: datetime | None
    marked_at: datetime
    taken_over: bool
    created_at: datetime
    now: datetime


@dataclass(frozen=True, slots=True)
class Planned:
    """The answer for a row whose next run was to be planned."""

    name: str
    revision: int
    planned_from: datetime
    next_run_at: datetime | None
    pickup_deadline: timedelta
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """Occurrences that are passed over: recorded together, counted, with the reason why none of them goes out."""

    first: datetime
    last: datetime
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a due row: at most one job, at most one record of late occurrences, and the next run."""

    row: Due
    job: uuid.UUID | None
    scheduled_for: datetime | None
    origin: str
    passed: Passed | None
    decided_until: datetime
    next_run_at: datetime | None
    pickup_deadline: timedelta


def plan(row: Definition, rules: Rules) -> Planned:
    """Plan the first run of a new, edited or resumed row.

    The first run is the next occurrence after the definition, never at once, however late this is asked.

    Raises:
        InvalidSchedule: the row can never be planned as it is.
    """
    schedule = compiled(row, rules)
    if schedule is None or (row.max_runs is not None and row.run_count >= row.max_runs):
        return Planned(row.name, row.revision, row.planned_from, None, LONGEST_PICKUP)
    first = following(schedule, first_instant(row), row.end_at)
    return Planned(row.name, row.revision, row.planned_from, first, pickup_after(schedule, first, rules))


def decide(row: Due, rules: Rules) -> Decision:
    """Decide about the occurrence that is due, and about those that were missed since.

    What is on time is decided by itself, oldest first: the next one in line becomes the row's next run even if
    it is due already. What is older is decided by `catchup`: one job at most, the rest counted.

    Raises:
        InvalidSchedule: the row can never be planned as it is.
    """
    schedule = compiled(row, rules)
    nominal = nominal_instant(row)
    if row.taken_over or row.now - max(row.next_run_at, nominal) <= rules.on_time:
        return _decided(row, rules, schedule, nominal, nominal, None)
    boundary = row.now - rules.on_time
    return _caught_up(row, rules, schedule, nominal, boundary)


def refuse(decision: Decision, reason: str) -> Decision:
    """Return the decision with its job turned into a record: its occurrence is passed over for this reason."""
    if decision.scheduled_for is None:
        return decision
    count = 1 + (decision.passed.count if decision.passed else 0)
    first = min(decision.scheduled_for, decision.passed.first if decision.passed else decision.scheduled_for)
    passed = Passed(first, decision.decided_until, count, reason)
    return replace(decision, job=None, scheduled_for=None, passed=passed)


def nominal_instant(row: Due) -> datetime:
    """Return the instant that the due occurrence stands for.

    A next run that SQL set to an instant at or before the last one decided is a new run: its instant is now.
    """
    nominal = row.planned_for or row.next_run_at
    if row.last_run_at is not None and nominal <= row.last_run_at:
        return max(row.now, row.last_run_at + MICROSECOND)
    return nominal


def compiled(row: Definition, rules: Rules) -> Schedule | None:
    """Return the row's schedule, or None for a row without times of its own.

    Raises:
        InvalidSchedule: the text is wrong, or faster than `pgbeat_min_interval`.
    """
    if row.schedule is None:
        return None
    schedule = parse(row.schedule, row.timezone or rules.timezone, name=row.name, dst=row.dst, anchor=row.anchor)
    if schedule.kind in ("interval", "iso"):
        first = schedule.next(row.anchor)
        second = None if first is None else schedule.next(first)
        if first is not None and second is not None and second - first < rules.min_interval:
            raise InvalidSchedule(
                row.schedule,
                "interval",
                f"a run every {(second - first).total_seconds():g} s is faster than pgbeat_min_interval, "
                f"{rules.min_interval.total_seconds():g} s: make it slower, or lower that setting",
            )
    return schedule


def first_instant(row: Definition) -> datetime:
    """Return the instant after which the row's occurrences count: its definition, or its inclusive start."""
    return row.planned_from if row.start_at is None else max(row.planned_from, row.start_at - MICROSECOND)


def following(schedule: Schedule | None, after: datetime, end_at: datetime | None) -> datetime | None:
    """Return the first occurrence after an instant that is not past the row's inclusive end."""
    found = None if schedule is None else schedule.next(after)
    return None if found is None or (end_at is not None and found > end_at) else found


def job_id(name: str, created_at: datetime, scheduled_for: datetime) -> uuid.UUID:
    """Return the id of a tick's job: the same whoever asks, and another one for a row made anew under the old name."""
    instants = (moment.astimezone(timezone.utc).isoformat() for moment in (created_at, scheduled_for))
    return uuid.uuid5(JOB_IDS, "\0".join((name, *instants)))


def pickup_after(schedule: Schedule | None, occurrence: datetime | None, rules: Rules) -> timedelta:
    """Return how long a sent message may wait for a worker: twice the gap to the next occurrence, within bounds."""
    if rules.pickup_deadline is not None:
        return rules.pickup_deadline
    following_one = None if schedule is None or occurrence is None else schedule.next(occurrence)
    if occurrence is None or following_one is None:
        return LONGEST_PICKUP
    return min(max(2 * (following_one - occurrence), SHORTEST_PICKUP), LONGEST_PICKUP)


def _caught_up(row: Due, rules: Rules, schedule: Schedule | None, nominal: datetime, boundary: datetime) -> Decision:
    until = boundary - MICROSECOND
    if row.end_at is not None:
        until = min(until, row.end_at)
    # Time before the definition in force is never caught up, even behind a next run that SQL set into the past.
    since = max(nominal, first_instant(row))
    count = 1 if schedule is None or until <= since else 1 + schedule.count(since, until)
    newest = nominal
    if count > 1 and schedule is not None:
        newest = schedule.previous(until + MICROSECOND) or nominal
    chosen = _chosen(row, schedule, nominal, newest)
    passed = _rest(schedule, nominal, newest, count, chosen)
    return _decided(row, rules, schedule, chosen, newest, passed, origin="catchup")


def _chosen(row: Due, schedule: Schedule | None, oldest: datetime, newest: datetime) -> datetime | None:
    """Return the one late occurrence that still goes out, if any."""
    if row.catchup == "none":
        return None
    earliest_allowed = oldest if row.catchup_window is None else row.now - row.catchup_window
    if newest < earliest_allowed:
        return None
    if row.catchup == "latest" or schedule is None:
        return newest
    return oldest if oldest >= earliest_allowed else schedule.next(earliest_allowed - MICROSECOND)


def _rest(
    schedule: Schedule | None, oldest: datetime, newest: datetime, count: int, chosen: datetime | None
) -> Passed | None:
    rest = count if chosen is None else count - 1
    if rest == 0:
        return None
    first, last = oldest, newest
    if schedule is not None and chosen == oldest:
        first = schedule.next(oldest) or oldest
    elif schedule is not None and chosen == newest:
        last = max(oldest, schedule.previous(newest) or oldest)
    return Passed(first, last, rest, "too_late")


def _decided(
    row: Due,
    rules: Rules,
    schedule: Schedule | None,
    chosen: datetime | None,
    until: datetime,
    passed: Passed | None,
    origin: str = "schedule",
) -> Decision:
    next_run_at = following(schedule, max(until, first_instant(row)), row.end_at)
    return Decision(
        row=row,
        job=None if chosen is None else job_id(row.name, row.created_at, chosen),
        scheduled_for=chosen,
        origin=origin,
        passed=passed,
        decided_until=until,
        next_run_at=next_run_at,
        pickup_deadline=pickup_after(schedule, until, rules),
    )
