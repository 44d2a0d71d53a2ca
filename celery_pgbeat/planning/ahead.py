"""The next run and those after it, planned ahead, so that Postgres can submit them without a decision by Python.

Most decisions are the same one: the occurrence is on time and is sent, and the next one becomes the next run. So the
beat that decides one also plans the runs that follow it. `mark.sql` submits such a row at once while nothing else is in
the way. When they are used up, or the row was changed, a beat decides again, and plans ahead again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from .due_times import DueTimes
from .types import MICROSECOND, Due

MOST_AHEAD = 40  # runs after the next one: one decision in 41 ticks; each makes the row 8 bytes wider, or 16
FURTHEST_AHEAD = timedelta(days=1)  # what decides the times may change without the row: time zones, a calendar in code
FREE_FOR = timedelta(minutes=1)  # how late `mark.sql` submits a row with windows at once: none opens so soon after it


class Ahead(NamedTuple):
    """The next run and those after it; without any after it, nothing. Of the last one it is not known what follows.

    Attributes:
        occurrences: of the next run, and of those after it.
        due_ats: when each is due; empty if each is due at its own instant.
    """

    occurrences: tuple[datetime, ...] = ()
    due_ats: tuple[datetime, ...] = ()


NOTHING = Ahead()


def planned_ahead(row: Due, due_times: DueTimes, next_run: datetime | None) -> Ahead:
    """Plan the runs from the next one on, as decisions on time would, up to the first one that a window may move."""
    schedule = due_times.cached_schedule
    if next_run is None or schedule is None or not row.task:
        return NOTHING
    ends_at = row.now + FURTHEST_AHEAD
    if due_times.end_at is not None and due_times.end_at < ends_at:
        ends_at = due_times.end_at
    occurrences = schedule.following(next_run - MICROSECOND, ends_at, MOST_AHEAD + 1)
    due_ats: tuple[datetime, ...] = ()
    if due_times.jitter or due_times.windows is not None:
        due_ats = due_times.due_ats(occurrences, FREE_FOR)
        occurrences = occurrences[: len(due_ats)]
    return Ahead(occurrences, due_ats) if len(occurrences) > 1 else NOTHING
