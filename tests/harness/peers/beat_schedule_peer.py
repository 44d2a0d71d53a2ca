"""An app with a `beat_schedule`: `runs URL START END` prints when Celery's own beat would run its entries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from celery import Celery
from celery.beat import BeatLazyFunc, ScheduleEntry
from celery.schedules import crontab, schedule

from tests.harness.peers.entries import CRONTABS, INTERVALS
from tests.harness.peers.peer_clock import PeerClock, print_runs


class Tides(schedule):
    """A schedule that decides in Python."""

    def is_due(self, last_run_at: datetime) -> Any:
        """Say that it is due."""
        return True, 60.0


ENTRIES: dict[str, dict[str, Any]] = {
    f"cron {number:02}": {
        "task": "shop.work",
        "schedule": crontab(minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday),
    }
    for number, (minute, hour, day, month, weekday) in enumerate(CRONTABS)
}
ENTRIES |= {
    f"every {every} {unit}": {"task": "shop.work", "schedule": timedelta(**{unit: every})} for every, unit in INTERVALS
}
ENTRIES |= {
    "seconds": {"task": "shop.work", "schedule": 5400.0},
    "with everything": {
        "task": "shop.work",
        "schedule": crontab(minute=0, hour=5),
        "args": (1, "a"),
        "kwargs": {"b": [None]},
        "options": {
            "queue": "slow",
            "priority": 3,
            "expires": 60,
            "headers": {"tenant": "north"},
            "exchange": "shop",
            "routing_key": "shop.slow",
        },
    },
    "own rule": {"task": "shop.work", "schedule": 3600.0, "pgbeat": {"overlap": "skip", "run_on_start": True}},
}
REFUSED: dict[str, dict[str, Any]] = {
    "lazy": {"task": "shop.work", "schedule": 60.0, "args": (BeatLazyFunc(str),)},
    "own class": {"task": "shop.work", "schedule": Tides(timedelta(hours=1))},
    "not JSON": {"task": "shop.work", "schedule": 60.0, "args": (object(),)},
    "linked": {"task": "shop.work", "schedule": 60.0, "options": {"link": "x"}},
    "no schedule": {"task": "shop.work"},
}

app = Celery("shop", set_as_current=False)
app.conf.timezone = "Europe/Berlin"
app.conf.beat_cron_starting_deadline = 600
app.conf.beat_schedule = {**ENTRIES, **REFUSED}


def print_runs_of(app: Celery, entries: Mapping[str, Mapping[str, Any]], start: datetime, end: datetime) -> None:
    """Print when Celery's own beat would run these entries of an app."""
    clock = PeerClock(start)
    ScheduleEntry._default_now = lambda entry: clock.now.astimezone(app.timezone)
    for name, given in entries.items():
        clock.now = start
        fields = {key: value for key, value in given.items() if key != "pgbeat"}
        print_runs(name, clock.runs(ScheduleEntry(name=name, app=app, last_run_at=start, **fields), end))


if __name__ == "__main__":
    _, _, *instants = sys.argv[1:]
    print_runs_of(app, ENTRIES, *map(datetime.fromisoformat, instants))
