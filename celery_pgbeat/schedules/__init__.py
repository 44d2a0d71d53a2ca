"""WHEN: text -> Schedule -> occurrences. Pure: no I/O, no clock, no Celery, no SQL.

One invariant: a schedule is a set of instants. `next`, `previous`, `count` and `matches` are four questions about that
one set, whatever the language of the text, the zone and the time of the year.

`parse.py` tells the kind and calls that kind's reader: `cron.py`, `intervals.py`, `iso.py`, `calendar_events.py`,
`rrule.py`, `solar.py`. A reader builds readings of a wall clock (`pattern.py` = `clock.py` on `days.py`,
`date_steps.py`, `rrule_readings.py`), which `wall.py` turns into instants by the spans of `zones.py` and a rule of
`dst.py`; or instants at once (`grid.py`). `times.py` has the two shapes that all of these share. `gaps.py` tells how
fast a schedule is. `words.py` and `notes.py` tell people what a schedule means, and what the changes of the clocks do
to it.
"""

from __future__ import annotations

from .dst_notes import dst_note, dst_skips
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
    "parse",
    "parse_windows",
    "shortest_gap",
]
