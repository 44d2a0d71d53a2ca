"""The runs after the next one, planned ahead, so that Postgres can submit them without a decision by Python.

Most decisions are the same one: the occurrence is on time and is sent, and the next one becomes the next run. For rows
whose occurrences are due at their own instants, the beat that decides one therefore also plans those that come after
the next run, with the ids of their jobs. `mark.sql` submits such a row at once while nothing else stands in its way.
When they are used up, or the row was changed, a beat decides again, and plans ahead again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from .due_times import DueTimes
from .identity import job_ids
from .types import Due

MOST_AHEAD = 40  # occurrences: one decision in 41 ticks; each makes the row 24 bytes wider, and a tick writes the row
FURTHEST_AHEAD = timedelta(days=1)  # what decides the times may change without the row: time zones, a calendar in code

NOTHING: tuple[tuple[datetime, ...], tuple[str, ...]] = ((), ())


def planned_ahead(
    row: Due, due_times: DueTimes, next_run: datetime | None
) -> tuple[tuple[datetime, ...], tuple[str, ...]]:
    """Return the occurrences after the next run, and the ids of the jobs of the next run and of all but the last.

    Of these, an occurrence is due at its own instant: there is no jitter, and no window. Empty for other rows.
    """
    schedule = due_times.cached_schedule
    if next_run is None or schedule is None or due_times.jitter or due_times.windows is not None or not row.task:
        return NOTHING
    ends_at = row.now + FURTHEST_AHEAD
    if due_times.end_at is not None and due_times.end_at < ends_at:
        ends_at = due_times.end_at
    ahead = schedule.following(next_run, ends_at, MOST_AHEAD)
    return (ahead, job_ids(row.name, row.created_at, (next_run, *ahead[:-1]))) if ahead else NOTHING
