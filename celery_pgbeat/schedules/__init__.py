"""WHEN: text -> Schedule -> occurrences. Pure: no I/O, no clock, no Celery, no SQL.

One invariant: a schedule is a set of instants. `next`, `previous`, `count` and `matches` always agree about that set,
in every language, zone and time of the year.

`registry.py` lists the kinds of schedules; each language has a folder (`cron/`, `interval/`, `iso/`, `calendar/`,
`rrule/`, `solar/`) with a reader and the words that describe it. `parse.py` finds the kind of a text and calls its
reader. A reader returns instants: computed directly, or from readings of a wall clock, which all kinds share
(`wallclock/`). `shortest_gap.py` computes how often a schedule occurs, `dst_notes.py` describes what the changes of the
clocks do to it, `windows.py` has the blackout windows.
"""

from __future__ import annotations

from .dst_notes import dst_note, dst_skips
from .own_zone import needs_zone, own_zone
from .parse import cache_key_parts, parse
from .schedule import Schedule
from .shortest_gap import gap_below, shortest_gap
from .windows import Windows, parse_windows

__all__ = [
    "Schedule",
    "Windows",
    "cache_key_parts",
    "dst_note",
    "dst_skips",
    "gap_below",
    "needs_zone",
    "own_zone",
    "parse",
    "parse_windows",
    "shortest_gap",
]
