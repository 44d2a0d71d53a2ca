"""The decision about a due row, and about the occurrences that were missed since."""

from __future__ import annotations

from datetime import datetime, timedelta

from .ahead import planned_ahead
from .catchup import Missed, caught_up_of
from .due_times import DueTimes, due_times_of, pickup_after
from .identity import job_id
from .types import MICROSECOND, Decision, Due, Postponed, Rules, Skipped


def decide(row: Due, rules: Rules) -> Decision | Postponed:
    """Decide about the occurrence that is due, and about those that were missed since.

    An occurrence that is on time is decided alone, oldest first: the next one becomes the next run of the row even if
    it is due already. If a blackout window has moved several to the same instant, they are decided together: the last
    one is sent and the others are skipped. Older ones are decided by `catchup`. Nothing starts inside a blackout
    window, and nothing is sent later than the `catchup_window` of the row, if it has one.

    What is too late must stay equal to `sql/beat/recover.sql`, which decides again about a job that was submitted
    and not sent; `tests/protocol/test_publish_confirm_recover.py` has the cases.

    Raises:
        InvalidSchedule: no run of the row can be planned.
    """
    due_times = due_times_of(row, rules)
    occurrence = occurrence_of(row)
    # `defers`: windows move what falls into them to their end. Otherwise they drop it: of a row that comes after others
    # at once, of any other row when the window closes.
    if row.comes_after and not due_times.defers and due_times.is_blacked_out(row.next_run_at):
        return _dropped_by_window(row, rules, due_times, occurrence)
    # A window may be changed until it closes, so what else falls into it is decided then. So is an occurrence that is
    # decided so late that a window has opened meanwhile.
    for instant in (row.next_run_at, row.now):
        if (allowed_at := due_times.next_allowed(instant)) > row.now:
            return Postponed(row=row, planned_for=occurrence, next_run_at=allowed_at)
    by_schedule = is_by_schedule(row)
    starts_at = due_times.with_jitter(occurrence) if by_schedule else row.next_run_at
    if not due_times.defers and due_times.is_blacked_out(starts_at):
        return _dropped_by_window(row, rules, due_times, occurrence)
    due_at = due_times.due_at(occurrence) if by_schedule else due_times.next_allowed(row.next_run_at)
    on_time = _on_time_for(row, rules)
    if row.now - max(due_at, occurrence) <= on_time:
        return _on_time(row, rules, due_times, occurrence)
    return _late(row, rules, due_times, occurrence, on_time)


def occurrence_of(row: Due) -> datetime:
    """Return the occurrence for which the row is due.

    A next run that SQL set to an instant at or before the last one decided is a new run: its occurrence is now.
    """
    occurrence = row.planned_for or row.next_run_at
    if row.last_run_at is not None and occurrence <= row.last_run_at:
        return max(row.now, row.last_run_at + MICROSECOND)
    return occurrence


def is_by_schedule(row: Due) -> bool:
    """Return whether the next run counts as an occurrence of the schedule.

    It does not if SQL has set `next_run_at`, or if the tasks after which a row without a schedule runs have ended then.
    If a window postpones a run that SQL has set, that run counts as one from then on: `planned_for` has its instant.
    """
    return row.planned_for is not None and not row.comes_after


def _on_time_for(row: Due, rules: Rules) -> timedelta:
    """Return for how long after its due time an occurrence is on time, so that `catchup` does not apply.

    A beat that marked the row in time and then died delayed it by its lease. The `catchup_window` of the row limits
    this, also where it is shorter.
    """
    on_time = rules.on_time + rules.lease if row.taken_over else rules.on_time
    return on_time if row.catchup_window is None else min(on_time, row.catchup_window)


def _dropped_by_window(row: Due, rules: Rules, due_times: DueTimes, occurrence: datetime) -> Decision:
    """Record an occurrence that fell into a window, with all others up to the end of the window."""
    last = occurrence
    if is_by_schedule(row):
        last = due_times.last_due_before(occurrence, due_times.next_allowed(due_times.with_jitter(occurrence)))
    skipped = Skipped(occurrence, last, 1 + due_times.count(occurrence, last), "blackout")
    return _decision(row, rules, due_times, None, last, skipped)


def _on_time(row: Due, rules: Rules, due_times: DueTimes, occurrence: datetime) -> Decision:
    """Send one occurrence: of those that a window has moved to the same instant the last one, and record the others."""
    moved = due_times.defers and due_times.is_blacked_out(due_times.with_jitter(occurrence))
    if not is_by_schedule(row) or not moved:
        return _decision(row, rules, due_times, occurrence, occurrence, None)
    last = _last_due_with(due_times, occurrence)
    return _decision(row, rules, due_times, last, last, _moved_before(due_times, occurrence, last))


def _late(row: Due, rules: Rules, due_times: DueTimes, occurrence: datetime, on_time: timedelta) -> Decision:
    """Decide by `catchup` about all occurrences that are late."""
    boundary = row.now - on_time
    # Time before the present definition is never caught up, even if SQL set the next run into it.
    since = max(occurrence, row.counts_after)
    newest = occurrence
    if due_times.count(since, boundary - MICROSECOND):
        last = due_times.last_due_before(occurrence, boundary)
        newest = last if last > since else occurrence
    missed = Missed(occurrence, since, newest, 1 + (due_times.count(since, newest) if newest > occurrence else 0))
    caught_up = caught_up_of(row, due_times, missed)
    if row.catchup == "all" and caught_up is not None:
        return _first_caught_up(row, rules, due_times, missed, caught_up)
    return _decision(
        row, rules, due_times, caught_up, newest, _too_late(due_times, missed, caught_up), origin="catchup"
    )


def _first_caught_up(row: Due, rules: Rules, due_times: DueTimes, missed: Missed, first: datetime) -> Decision:
    """Decide about the first occurrence that is sent, or first about those before it; the next one is decided next."""
    before = missed.count - 1 - due_times.count(max(first, missed.since), missed.newest)
    if before:
        last = max(missed.oldest, due_times.last_until(first - MICROSECOND) or missed.oldest)
        return _decision(row, rules, due_times, None, last, Skipped(missed.oldest, last, before, "too_late"))
    last = first
    if due_times.is_blacked_out(due_times.with_jitter(first)):
        last = _last_due_with(due_times, first)
    return _decision(row, rules, due_times, last, last, _moved_before(due_times, first, last), origin="catchup")


def _last_due_with(due_times: DueTimes, occurrence: datetime) -> datetime:
    """Return the last occurrence that is due at the same instant: one exactly at the end of the window included."""
    return due_times.last_due_before(occurrence, due_times.due_at(occurrence) + MICROSECOND)


def _moved_before(due_times: DueTimes, first: datetime, last: datetime) -> Skipped | None:
    """Return the record of the occurrences that a window has moved to the instant of the last one."""
    count = due_times.count(first, last)
    if count == 0:
        return None
    return Skipped(first, max(first, due_times.last_until(last - MICROSECOND) or first), count, "blackout")


def _too_late(due_times: DueTimes, missed: Missed, sent: datetime | None) -> Skipped | None:
    """Return the record of the missed occurrences that are not sent, None if there are none."""
    count = missed.count - (sent is not None)
    if count == 0:
        return None
    first, last = missed.oldest, missed.newest
    if sent == first:
        first = due_times.following(first) or first
    elif sent == last:
        last = max(first, due_times.last_until(last - MICROSECOND) or first)
    return Skipped(first, last, count, "too_late")


def _decision(
    row: Due,
    rules: Rules,
    due_times: DueTimes,
    sent: datetime | None,
    decided_until: datetime,
    skipped: Skipped | None,
    origin: str = "schedule",
) -> Decision:
    following = due_times.following(decided_until)
    ahead, jobs_ahead = planned_ahead(row, due_times, following)
    due_at = None
    if sent is not None:
        due_at = row.next_run_at if origin == "schedule" else due_times.due_at(sent)
    return Decision(
        row=row,
        job=None if sent is None else job_id(row.name, row.created_at, sent),
        scheduled_for=sent,
        due_at=due_at,
        origin=origin,
        skipped=skipped,
        decided_until=decided_until,
        next_run_at=None if following is None else due_times.due_at(following),
        planned_for=following,
        pickup_deadline=pickup_after(due_times, decided_until, rules),
        planned_ahead=ahead,
        jobs_ahead=jobs_ahead,
    )
