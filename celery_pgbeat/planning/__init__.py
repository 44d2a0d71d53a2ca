"""Decides about a row at an instant: what is submitted, what is skipped, when it runs next. Pure: no I/O, no clock.

`postgres/` reads the rows, and writes what is decided here. The invariant: every occurrence between the last one
decided and the next run is in exactly one decision, as the job that is sent or as one of the skipped ones, which are
counted.

Read `types.py` first; `due_times.py`, when the occurrences of a row are due (jitter, windows, bounds); then
`decide.py`, the decision about a due row, with what it plans ahead (`ahead.py`). `first.py` plans the first run, and
`backfill.py` chooses the occurrences of a requested range. `cached_schedule.py` keeps compiled schedules, `identity.py`
makes the ids of jobs.

An *occurrence* is an instant that the schedule names. `due_at` is when it is due.
"""

from __future__ import annotations

from .backfill import NOTHING, BackfillRange, BackfillRow, BackfillStep, History, range_of
from .decide import decide
from .due_times import DueTimes, due_times_of, windows_of
from .first import first_of, plan
from .identity import job_id
from .types import Decision, Due, Planned, PlanningRow, Postponed, Rules, Skipped, Unplanned

__all__ = [
    "NOTHING",
    "BackfillRange",
    "BackfillRow",
    "BackfillStep",
    "Decision",
    "Due",
    "DueTimes",
    "History",
    "Planned",
    "PlanningRow",
    "Postponed",
    "Rules",
    "Skipped",
    "Unplanned",
    "decide",
    "due_times_of",
    "first_of",
    "job_id",
    "plan",
    "range_of",
    "windows_of",
]
