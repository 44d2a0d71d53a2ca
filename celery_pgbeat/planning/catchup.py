"""Which of the missed occurrences still go out: found by halving and counting, never by walking through millions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .due_times import DueTimes
from .types import Due

CAUGHT_UP_AT_MOST = 1000  # occurrences that `all` sends after an outage, the newest, unless the row says otherwise


@dataclass(frozen=True, slots=True)
class Missed:
    """Occurrences that are past their time: all from the oldest to the newest, counted."""

    oldest: datetime
    since: datetime  # occurrences count after this: the oldest, unless SQL has set that before the row was defined
    newest: datetime
    count: int


def chosen_of(row: Due, line: DueTimes, missed: Missed) -> datetime | None:
    """Return the late occurrence that goes out now, if any; under `all` the oldest of those that go out."""
    if row.catchup == "none":
        return None
    earliest_due = None if row.catchup_window is None else row.now - row.catchup_window
    if row.catchup == "latest":
        latest = _last_free(line, missed)
        return None if earliest_due is not None and line.due(latest) < earliest_due else latest
    oldest: datetime | None = missed.oldest
    if earliest_due is not None:
        oldest = _first_due_from(line, missed, earliest_due)
    if oldest is not None and row.catchup == "all":
        oldest = _newest_of(line, oldest, missed, row.catchup_limit or CAUGHT_UP_AT_MOST)
    return None if oldest is None else _first_free(line, oldest, missed.newest)


def _first_due_from(line: DueTimes, missed: Missed, earliest_due: datetime) -> datetime | None:
    """Return the oldest missed occurrence that was due at an instant or later."""
    if line.due(missed.oldest) >= earliest_due:
        return missed.oldest
    if line.due(missed.newest) < earliest_due:
        return None
    return line.following(line.newest_due_before(missed.oldest, earliest_due))


def _newest_of(line: DueTimes, oldest: datetime, missed: Missed, limit: int) -> datetime:
    """Return the occurrence from which on there are at most `limit` up to the newest."""
    newest = missed.newest
    if line.count(max(oldest, missed.since), newest) < limit:
        return oldest
    low, high = max(oldest, missed.since), newest  # more than `limit` from low on, at most `limit` from high on
    while (middle := line.newest(low + (high - low) / 2)) is not None:
        if middle <= low:
            step = line.following(low)
            if step is None or step >= high:
                break
            middle = step
        if line.count(middle, newest) < limit:
            high = middle
        else:
            low = middle
    return high


def _first_free(line: DueTimes, oldest: datetime, newest: datetime) -> datetime | None:
    """Return the first occurrence, from one on, that falls into no window; one that is moved always counts."""
    found = oldest
    while not line.moves and line.covers(line.spread(found)):
        free = line.free_from(line.spread(found))
        following = line.following(line.newest_due_before(found, free))
        if following is None or following > newest:
            return None
        found = following
    return found


def _last_free(line: DueTimes, missed: Missed) -> datetime:
    """Return the last missed occurrence that falls into no window; the oldest does not."""
    found = missed.newest
    while not line.moves and found > missed.oldest and line.covers(line.spread(found)):
        opening = line.blocked_since(line.spread(found))
        if line.due(missed.oldest) >= opening:
            return missed.oldest
        found = line.newest_due_before(missed.oldest, opening)
    return found
