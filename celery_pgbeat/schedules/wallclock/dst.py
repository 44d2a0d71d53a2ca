"""What a schedule does when a wall clock changes: one table for all kinds.

A gap is wall time that does not exist (02:00 to 03:00 on a spring night), an overlap is wall time that exists twice.
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


class Overlap(Enum):
    """Which passes of an overlap count."""

    FIRST = "first"
    BOTH = "both"


class Rule(NamedTuple):
    """How readings become instants at a change of the offset."""

    gap: Gap
    overlap: Overlap


CHOICES = ("default", "skip", "once", "all")

REAL_TIME = {  # cron and crontab whose minute or hour starts with "*": every real instant that reads so
    "default": Rule(Gap.NOTHING, Overlap.BOTH),
    "skip": Rule(Gap.NOTHING, Overlap.FIRST),
    "once": Rule(Gap.NOTHING, Overlap.FIRST),
    "all": Rule(Gap.NOTHING, Overlap.BOTH),
}
FIXED = {  # cron and crontab at fixed times of the day: never lost, never doubled
    "default": Rule(Gap.AFTER, Overlap.FIRST),
    "skip": Rule(Gap.NOTHING, Overlap.FIRST),
    "once": Rule(Gap.AFTER, Overlap.FIRST),
    "all": Rule(Gap.AFTER, Overlap.BOTH),
}
CALENDAR = {  # as systemd does it
    "default": Rule(Gap.NOTHING, Overlap.FIRST),
    "skip": Rule(Gap.NOTHING, Overlap.FIRST),
    "once": Rule(Gap.NOTHING, Overlap.FIRST),
    "all": Rule(Gap.NOTHING, Overlap.BOTH),
}
DATES = {  # RRULE and the date parts of ISO 8601, as RFC 5545 has it
    "default": Rule(Gap.SHIFT, Overlap.FIRST),
    "skip": Rule(Gap.NOTHING, Overlap.FIRST),
    "once": Rule(Gap.SHIFT, Overlap.FIRST),
    "all": Rule(Gap.SHIFT, Overlap.BOTH),
}
