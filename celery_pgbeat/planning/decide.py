"""The decision about a due row, from top to bottom.

The occurrence that is due; those that were missed since; which of them `catchup` sends; which of these a window drops;
the others, which are recorded; and the next run. `due_times.py` is what this is written in.

What is too late must stay equal to `sql/beat/recover.sql`, which decides again about a job that was submitted and not
sent; `tests/protocol/test_publish_confirm_recover.py` has the cases.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from .ahead import planned_ahead
from .due_times import DueTimes, due_times_of
from .identity import job_id
from .types import MICROSECOND, Decision, Due, Postponed, Rules, Skipped

CAUGHT_UP_AT_MOST = 1000  # occurrences that `all` sends after an outage, the newest, unless the row sets a limit


def decide(row: Due, rules: Rules) -> Decision | Postponed:
    """Decide about the occurrence that is due, and about those that were missed since.

    An occurrence that is on time is decided alone, oldest first: the next one becomes the next run of the row even if
    it is due already. If a blackout window has moved several to the same instant, they are decided together: the last
    one is sent and the others are skipped. Older ones are decided by `catchup`. Nothing starts inside a blackout
    window, and nothing is sent later than the `catchup_window` of the row, if it has one.

    Raises:
        InvalidSchedule: no run of the row can be planned.
    """
    due_times = due_times_of(row, rules)
    first = _occurrence_of(row)
    # Not if SQL has set `next_run_at`, nor if the tasks after which a row without a schedule runs have ended then. If a
    # window postpones a run that SQL has set, that is by the schedule from then on: `planned_for` has its instant.
    by_schedule = row.planned_for is not None and not row.comes_after
    starts_at = due_times.with_jitter(first) if by_schedule else row.next_run_at
    allowed_at = due_times.next_allowed(starts_at)
    # Windows move what falls into them to their end, or drop it: of a row that comes after others at once, of any other
    # row when the window closes. Until then a window may be changed. So what falls into it is decided then, and so is
    # an occurrence that is decided so late that a window has opened meanwhile.
    is_dropped = allowed_at > starts_at and not due_times.defers
    if not (is_dropped and row.comes_after):
        closes_at = due_times.next_allowed(max(row.now, row.next_run_at))
        if closes_at > row.now:
            return Postponed(row=row, planned_for=first, next_run_at=closes_at)
    together = Skipped(first, first, 1, "blackout")  # mostly it is alone, and none is skipped
    if by_schedule and allowed_at > starts_at:
        together = due_times.together(first, allowed_at)
    if is_dropped:
        return _decision(row, rules, due_times, together, None)
    on_time = _on_time_for(row, rules)
    if row.now - max(allowed_at, first) <= on_time:
        return _decision(row, rules, due_times, together, together.last)
    return _late(row, rules, due_times, first, row.now - on_time)


def _occurrence_of(row: Due) -> datetime:
    """Return the occurrence for which the row is due.

    A next run that SQL set to an instant at or before the last one decided is a new run: its occurrence is now.
    """
    occurrence = row.planned_for or row.next_run_at
    if row.last_run_at is not None and occurrence <= row.last_run_at:
        return max(row.now, row.last_run_at + MICROSECOND)
    return occurrence


def _on_time_for(row: Due, rules: Rules) -> timedelta:
    """Return for how long after its due time an occurrence is on time, so that `catchup` does not apply.

    A beat that marked the row in time and then died delayed it by its lease. The `catchup_window` of the row limits
    this, also where it is shorter.
    """
    on_time = rules.on_time + rules.lease if row.taken_over else rules.on_time
    return on_time if row.catchup_window is None else min(on_time, row.catchup_window)


def _late(row: Due, rules: Rules, due_times: DueTimes, first: datetime, boundary: datetime) -> Decision:
    """Decide by `catchup` about all occurrences that were due before the boundary, of which there may be millions.

    Of `all` one decision sends the first, and those after it are decided one by one. Those that it does not send come
    before them, so one decision records them first.
    """
    newest = due_times.last_due_before(first, boundary)
    missed = _missed(row, due_times, first, newest if newest > row.counts_after else first)
    caught_up = _caught_up(row, due_times, missed)
    if row.catchup != "all" or caught_up is None:
        return _decision(row, rules, due_times, missed, caught_up, "catchup")
    if caught_up > first:
        before = max(first, due_times.last_until(caught_up - MICROSECOND) or first)
        return _decision(row, rules, due_times, _missed(row, due_times, first, before), None)
    together = due_times.together(first, due_times.due_at(first))
    return _decision(row, rules, due_times, together, together.last, "catchup")


def _missed(row: Due, due_times: DueTimes, first: datetime, last: datetime) -> Skipped:
    """Return the occurrences from the first to the last, counted and not listed.

    Time before the present definition is never caught up, even if SQL set the next run into it.
    """
    return Skipped(first, last, 1 + due_times.count(max(first, row.counts_after), last), "too_late")


def _caught_up(row: Due, due_times: DueTimes, missed: Skipped) -> datetime | None:
    """Return the missed occurrence that `catchup` sends now, if any; of `all` the oldest of those that it sends."""
    if row.catchup == "none":
        return None
    earliest_due = None if row.catchup_window is None else row.now - row.catchup_window
    if row.catchup == "latest":
        latest = _last_allowed(due_times, missed)
        return None if earliest_due is not None and due_times.due_at(latest) < earliest_due else latest
    oldest: datetime | None = missed.first
    if earliest_due is not None:
        oldest = due_times.first_due_from(missed.first, earliest_due)
    if row.catchup == "all" and oldest is not None:
        oldest = _first_of_newest(row, due_times, oldest, missed.last)
    return _first_allowed(due_times, oldest, missed.last)


def _first_of_newest(row: Due, due_times: DueTimes, oldest: datetime, newest: datetime) -> datetime:
    """Return the occurrence from which there are at most `catchup_limit` up to the newest."""
    start, limit = max(oldest, row.counts_after), row.catchup_limit or CAUGHT_UP_AT_MOST
    if due_times.count(start, newest) < limit:
        return oldest
    return due_times.bisect(start, newest, lambda occurrence: due_times.count(occurrence, newest) >= limit)[1]


def _first_allowed(due_times: DueTimes, oldest: datetime | None, newest: datetime) -> datetime | None:
    """Return the first occurrence from `oldest` to `newest` that no window drops."""
    occurrence = oldest
    while occurrence is not None and occurrence <= newest:
        due_at = due_times.due_at(occurrence)
        allowed_at = due_times.next_allowed(due_at)
        if allowed_at == due_at:
            return occurrence
        occurrence = due_times.first_due_from(occurrence, allowed_at)
    return None


def _last_allowed(due_times: DueTimes, missed: Skipped) -> datetime:
    """Return the last missed occurrence that no window drops; none drops the first."""
    occurrence = missed.last
    while occurrence > missed.first:
        due_at = due_times.due_at(occurrence)
        if due_times.next_allowed(due_at) == due_at:
            break
        occurrence = due_times.last_due_before(missed.first, due_times.blacked_out_since(due_at))
    return occurrence


def _decision(
    row: Due,
    rules: Rules,
    due_times: DueTimes,
    decided: Skipped,
    sent: datetime | None,
    origin: str = "schedule",
) -> Decision:
    """Return the decision that sends one of the occurrences decided, or none, and records the others."""
    following = due_times.following(decided.last)
    ahead = planned_ahead(row, due_times, following)
    due_at = None
    if sent is not None:
        due_at = row.next_run_at if origin == "schedule" else due_times.due_at(sent)
    return Decision(
        row=row,
        job=None if sent is None else job_id(row.name, row.created_at, sent),
        scheduled_for=sent,
        due_at=due_at,
        origin=origin,
        skipped=decided if sent is None else _others(due_times, decided, sent),
        decided_until=decided.last,
        next_run_at=None if following is None else due_times.due_at(following),
        planned_for=following,
        pickup_deadline=due_times.pickup_after(decided.last, rules),
        planned_ahead=ahead.occurrences,
        due_ahead=ahead.due_ats,
    )


def _others(due_times: DueTimes, decided: Skipped, sent: datetime) -> Skipped | None:
    """Return the record of the occurrences that are not sent, None if there are none."""
    first, last, count = decided.first, decided.last, decided.count - 1
    if count == 0:
        return None
    if sent == first:
        first = due_times.following(first) or first
    elif sent == last:
        last = max(first, due_times.last_until(last - MICROSECOND) or first)
    return Skipped(first, last, count, decided.reason)
