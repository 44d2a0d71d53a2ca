"""The decision about a due row, and about what was missed since."""

from __future__ import annotations

from datetime import datetime, timedelta

from .catchup import Missed, chosen_of
from .due_times import DueTimes, due_times_of, pickup_after
from .identity import job_id
from .types import MICROSECOND, Decision, Due, Postponed, Rules, Skipped


def decide(row: Due, rules: Rules) -> Decision | Postponed:
    """Decide about the occurrence that is due, and about those that were missed since.

    What is on time is decided by itself, oldest first: the next one in line becomes the row's next run even if
    it is due already. What is older is decided by `catchup`. Nothing starts inside a blackout window, and nothing
    goes out later than the row's `catchup_window`, if it has one.

    Raises:
        InvalidSchedule: the row can never be planned as it is.
    """
    line = due_times_of(row, rules)
    nominal = nominal_instant(row)
    # What falls into a window is looked at when that has closed: it may be changed until then. So is what comes too
    # late for the moment before it.
    for instant in (row.next_run_at, row.now):
        if (free := line.free_from(instant)) > row.now:
            return Postponed(row=row, planned_for=nominal, next_run_at=free)
    if not line.moves and line.covers(row.next_run_at if row.planned_for is None else line.spread(nominal)):
        return _skipped(row, rules, line, nominal)
    due_at = line.free_from(row.next_run_at) if row.planned_for is None else line.due(nominal)
    on_time = _on_time_for(row, rules)
    if row.now - max(due_at, nominal) <= on_time:
        return _decided_by_itself(row, rules, line, nominal)
    return _caught_up(row, rules, line, nominal, on_time)


def nominal_instant(row: Due) -> datetime:
    """Return the instant that the due occurrence stands for.

    A next run that SQL set to an instant at or before the last one decided is a new run: its instant is now.
    """
    nominal = row.planned_for or row.next_run_at
    if row.last_run_at is not None and nominal <= row.last_run_at:
        return max(row.now, row.last_run_at + MICROSECOND)
    return nominal


def _on_time_for(row: Due, rules: Rules) -> timedelta:
    """Return for how long after its due time the row's occurrence is on time, so that `catchup` is not asked.

    A beat that had marked the row in time and then died held it up for its lease. A `catchup_window` that somebody has
    set is the last word, also where it is shorter.
    """
    on_time = rules.on_time + rules.lease if row.taken_over else rules.on_time
    return on_time if row.catchup_window is None else min(on_time, row.catchup_window)


def _skipped(row: Due, rules: Rules, line: DueTimes, nominal: datetime) -> Decision:
    """Record an occurrence that fell into a window, with all others up to the window's end."""
    last = nominal
    if row.planned_for is not None:
        last = line.newest_due_before(nominal, line.free_from(line.spread(nominal)))
    skipped = Skipped(nominal, last, 1 + line.count(nominal, last), "blackout")
    return _decided(row, rules, line, None, last, skipped)


def _decided_by_itself(row: Due, rules: Rules, line: DueTimes, nominal: datetime) -> Decision:
    """Decide one occurrence, together with those that a window has moved to the same instant."""
    if not line.moves or row.planned_for is None or not line.covers(line.spread(nominal)):
        return _decided(row, rules, line, nominal, nominal, None)
    # An occurrence at the very instant at which the window closes counts as the latest of those it held back.
    last = line.newest_due_before(nominal, line.due(nominal) + MICROSECOND)
    return _decided(row, rules, line, last, last, _held_back(line, nominal, last))


def _caught_up(row: Due, rules: Rules, line: DueTimes, nominal: datetime, on_time: timedelta) -> Decision:
    boundary = row.now - on_time
    # Time before the definition in force is never caught up, even behind a next run that SQL set into the past.
    since = max(nominal, row.counts_after)
    newest = nominal
    if line.count(since, boundary - MICROSECOND):
        found = line.newest_due_before(nominal, boundary)
        newest = found if found > since else nominal
    missed = Missed(nominal, since, newest, 1 + (line.count(since, newest) if newest > nominal else 0))
    chosen = chosen_of(row, line, missed)
    if row.catchup == "all" and chosen is not None:
        return _one_of_all(row, rules, line, missed, chosen)
    return _decided(row, rules, line, chosen, newest, _rest(line, missed, chosen), origin="catchup")


def _one_of_all(row: Due, rules: Rules, line: DueTimes, missed: Missed, chosen: datetime) -> Decision:
    """Decide about the first that goes out; the next one in line is decided next."""
    before = missed.count - 1 - line.count(max(chosen, missed.since), missed.newest)
    if before:
        last = max(missed.oldest, line.newest(chosen - MICROSECOND) or missed.oldest)
        return _decided(row, rules, line, None, last, Skipped(missed.oldest, last, before, "too_late"))
    last = chosen
    if line.covers(line.spread(chosen)):
        last = line.newest_due_before(chosen, line.due(chosen) + MICROSECOND)
    return _decided(row, rules, line, last, last, _held_back(line, chosen, last), origin="catchup")


def _held_back(line: DueTimes, first: datetime, last: datetime) -> Skipped | None:
    """Return the record of those that a window has moved to the instant of the last of them."""
    count = line.count(first, last)
    if count == 0:
        return None
    return Skipped(first, max(first, line.newest(last - MICROSECOND) or first), count, "blackout")


def _rest(line: DueTimes, missed: Missed, chosen: datetime | None) -> Skipped | None:
    """Return the record of what was missed and does not go out, None if that is nothing."""
    count = missed.count - (chosen is not None)
    if count == 0:
        return None
    first, last = missed.oldest, missed.newest
    if chosen == first:
        first = line.following(first) or first
    elif chosen == last:
        last = max(first, line.newest(last - MICROSECOND) or first)
    return Skipped(first, last, count, "too_late")


def _decided(
    row: Due,
    rules: Rules,
    line: DueTimes,
    chosen: datetime | None,
    until: datetime,
    skipped: Skipped | None,
    origin: str = "schedule",
) -> Decision:
    following = line.following(until)
    due_at = None
    if chosen is not None:
        due_at = row.next_run_at if origin == "schedule" else line.due(chosen)
    return Decision(
        row=row,
        job=None if chosen is None else job_id(row.name, row.created_at, chosen),
        scheduled_for=chosen,
        due_at=due_at,
        origin=origin,
        skipped=skipped,
        decided_until=until,
        next_run_at=None if following is None else line.due(following),
        planned_for=following,
        pickup_deadline=pickup_after(line, until, rules),
    )
