"""Which of the missed occurrences is still sent. Found by bisection and counting, not by a walk through millions.

`decide.py` finds out which occurrences are missed. The rules must stay equal to those of `sql/beat/recover.sql` for
jobs that were submitted and not sent (`tests/protocol/test_publish_confirm_recover.py` has the cases).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .due_times import DueTimes
from .types import Due

CAUGHT_UP_AT_MOST = 1000  # occurrences that `all` sends after an outage, the newest, unless the row sets a limit


@dataclass(frozen=True, slots=True)
class Missed:
    """The occurrences that are late: all from the oldest to the newest, and their number."""

    oldest: datetime
    since: datetime  # `count` is of those after this: the oldest, or the definition if SQL set a run before that
    newest: datetime
    count: int


def caught_up_of(row: Due, due_times: DueTimes, missed: Missed) -> datetime | None:
    """Return the missed occurrence that is sent now, if any; under `all` the oldest of those that are sent."""
    if row.catchup == "none":
        return None
    earliest_due = None if row.catchup_window is None else row.now - row.catchup_window
    if row.catchup == "latest":
        latest = _last_allowed(due_times, missed)
        return None if earliest_due is not None and due_times.due_at(latest) < earliest_due else latest
    oldest: datetime | None = missed.oldest
    if earliest_due is not None:
        oldest = _first_due_from(due_times, missed, earliest_due)
    if oldest is not None and row.catchup == "all":
        oldest = _first_of_newest(due_times, oldest, missed, row.catchup_limit or CAUGHT_UP_AT_MOST)
    return None if oldest is None else _first_allowed(due_times, oldest, missed.newest)


def _first_due_from(due_times: DueTimes, missed: Missed, earliest_due: datetime) -> datetime | None:
    """Return the oldest missed occurrence that was due at an instant or later."""
    if due_times.due_at(missed.oldest) >= earliest_due:
        return missed.oldest
    if due_times.due_at(missed.newest) < earliest_due:
        return None
    return due_times.following(due_times.last_due_before(missed.oldest, earliest_due))


def _first_of_newest(due_times: DueTimes, oldest: datetime, missed: Missed, limit: int) -> datetime:
    """Return the occurrence from which there are at most `limit` up to the newest."""
    start, newest = max(oldest, missed.since), missed.newest
    if due_times.count(start, newest) < limit:
        return oldest
    return due_times.bisect(start, newest, lambda occurrence: due_times.count(occurrence, newest) >= limit)[1]


def _first_allowed(due_times: DueTimes, oldest: datetime, newest: datetime) -> datetime | None:
    """Return the first occurrence from `oldest` on that no window drops; under `defer` that is the oldest itself."""
    occurrence = oldest
    while not due_times.defers and due_times.is_blacked_out(due_times.with_jitter(occurrence)):
        closing = due_times.next_allowed(due_times.with_jitter(occurrence))
        following = due_times.following(due_times.last_due_before(occurrence, closing))
        if following is None or following > newest:
            return None
        occurrence = following
    return occurrence


def _last_allowed(due_times: DueTimes, missed: Missed) -> datetime:
    """Return the last missed occurrence that no window drops; none drops the oldest."""
    occurrence = missed.newest
    while (
        not due_times.defers
        and occurrence > missed.oldest
        and due_times.is_blacked_out(due_times.with_jitter(occurrence))
    ):
        opening = due_times.blacked_out_since(due_times.with_jitter(occurrence))
        if due_times.due_at(missed.oldest) >= opening:
            return missed.oldest
        occurrence = due_times.last_due_before(missed.oldest, opening)
    return occurrence
