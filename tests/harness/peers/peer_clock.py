"""The clock of Celery's schedules, set by hand, and the loop of its beat without a heap."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from celery import schedules

TICK = timedelta(microseconds=1)  # the least step: a remaining time is rounded to microseconds


class PeerClock:
    """Sets the time that all of Celery's schedules read."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        schedules.BaseSchedule.now = lambda schedule: self.now.astimezone(schedule.tz or timezone.utc)

    def runs(self, entry: Any, until: datetime) -> Iterator[datetime]:
        """Iterate over the runs of an entry, as beat would look at it: whenever the entry says that it may be due."""
        while self.now < until:
            due, seconds = entry.is_due()
            if due:
                yield self.now
                entry = next(entry)
                seconds = entry.is_due()[1]
            if seconds is None:
                return
            self.now += max(timedelta(seconds=seconds), TICK)


def print_runs(name: str, runs: Iterator[datetime]) -> None:
    """Print the runs of an entry as a line of JSON, in whole seconds."""
    instants = [(run + timedelta(milliseconds=500)).replace(microsecond=0) for run in runs]
    print(json.dumps([name, [instant.astimezone(timezone.utc).isoformat() for instant in instants]]))
