"""What a schedule does when a wall clock changes: one table for all kinds.

A *gap* is wall time that the clocks skip (02:00 to 03:00 on a spring night); elsewhere the word is also used for the
time between two occurrences (`shortest_gap.py`, `min_gap`). *Repeated* time is wall time that they
show twice. A *reading* is what a wall clock shows, without a zone; the tables say which instants it becomes.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import NamedTuple

# Debian's cron catches up gaps that are shorter than this and skips the rest (Apia lost a whole day in 2011).
LONGEST_CAUGHT_UP = timedelta(hours=3)


class Gap(Enum):
    """Where a reading goes that falls into a gap."""

    NOTHING = "nothing"
    AFTER = "after"  # all readings of one gap become one occurrence, at the first instant after it
    SHIFT = "shift"  # later by the length of the gap


class Repeat(Enum):
    """Which passes of repeated wall time count."""

    FIRST = "first"
    BOTH = "both"


class Rule(NamedTuple):
    """How readings become instants at a change of the offset."""

    gap: Gap
    repeat: Repeat


CHOICES = ("default", "skip", "once", "all")

REAL_TIME = {  # cron and crontab whose minute or hour starts with "*": every real instant that reads so
    "default": Rule(Gap.NOTHING, Repeat.BOTH),
    "skip": Rule(Gap.NOTHING, Repeat.FIRST),
    "once": Rule(Gap.NOTHING, Repeat.FIRST),
    "all": Rule(Gap.NOTHING, Repeat.BOTH),
}
FIXED = {  # cron and crontab at fixed times of the day: never lost, never doubled
    "default": Rule(Gap.AFTER, Repeat.FIRST),
    "skip": Rule(Gap.NOTHING, Repeat.FIRST),
    "once": Rule(Gap.AFTER, Repeat.FIRST),
    "all": Rule(Gap.AFTER, Repeat.BOTH),
}
CALENDAR = {  # as systemd does it
    "default": Rule(Gap.NOTHING, Repeat.FIRST),
    "skip": Rule(Gap.NOTHING, Repeat.FIRST),
    "once": Rule(Gap.NOTHING, Repeat.FIRST),
    "all": Rule(Gap.NOTHING, Repeat.BOTH),
}
DATES = {  # RRULE and the date parts of ISO 8601, as RFC 5545 has it
    "default": Rule(Gap.SHIFT, Repeat.FIRST),
    "skip": Rule(Gap.NOTHING, Repeat.FIRST),
    "once": Rule(Gap.SHIFT, Repeat.FIRST),
    "all": Rule(Gap.SHIFT, Repeat.BOTH),
}
