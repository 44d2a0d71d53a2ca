"""WHAT NOW: one row and the time -> what to submit, what to record, when next. Pure: no I/O, no clock.

The store reads rows and carries out decisions; nothing here knows how. The invariant of the room: every
occurrence between the last one decided and the next run is accounted for in exactly one decision, as the
job that goes out or as one of the counted rest.

`rows.py` has the types, `recurrence.py` what is remembered of schedules, `timeline.py` when a row's occurrences are due
(jitter, windows, bounds), `first.py` the first run of a row, `decide.py` what becomes of a due one, `catchup.py` which
of the missed ones still go out, `backfill.py` which of a range that somebody asks for.
"""

from __future__ import annotations

from .backfill import NOTHING, Filling, History, Range, Step, range_of
from .decide import decide
from .first import first_of, plan
from .identity import job_id
from .rows import Decision, Definition, Due, Passed, Planned, Postponed, Rules, Unplanned
from .timeline import Timeline, timeline_of, windows_of

__all__ = [
    "NOTHING",
    "Decision",
    "Definition",
    "Due",
    "Filling",
    "History",
    "Passed",
    "Planned",
    "Postponed",
    "Range",
    "Rules",
    "Step",
    "Timeline",
    "Unplanned",
    "decide",
    "first_of",
    "job_id",
    "plan",
    "range_of",
    "timeline_of",
    "windows_of",
]
