"""APScheduler 3: `fill URL START` writes jobs by its own job store, `runs URL START END` prints their runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from tests.harness.peers.entries import varied
from tests.harness.peers.peer_clock import print_runs

BERLIN = "Europe/Berlin"
OWN_NAMES = {"day_of_month": "day", "month_of_year": "month"}
CRON_TRIGGERS: dict[str, dict[str, Any]] = {
    "workdays": {"day_of_week": "mon-fri", "hour": "9-17", "minute": "*/15"},
    "either week day": {"day_of_week": "0,2,6", "hour": 7},
    "every second day of the week": {"day_of_week": "*/2", "hour": 8},
    "both day fields": {"day": "20-31", "day_of_week": "mon", "hour": 1},
    "seconds": {"second": "10,40", "minute": 5, "hour": "*/6"},
    "last day": {"day": "last", "hour": 12},
    "fourth friday": {"day": "4th fri", "hour": 12},
    "last sunday": {"day": "last sun", "hour": 12},
    "a year": {"year": "2026-2027", "month": "3,10", "hour": 4},
}
REFUSED: dict[str, dict[str, Any]] = {
    "a week": {"week": "*/2", "hour": 4},
    "seconds on both day fields": {"day": "1-7", "day_of_week": "mon", "second": 30},
}


def scheduler_on(url: str) -> BackgroundScheduler:
    """Start a scheduler that runs nothing."""
    store = SQLAlchemyJobStore(url.replace("postgresql://", "postgresql+psycopg2://"))
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=BERLIN)
    scheduler.start(paused=True)
    return scheduler


def fill(scheduler: BackgroundScheduler, start: datetime) -> None:
    """Write jobs of all kinds."""

    def add(name: str, trigger: Any, **fields: Any) -> None:
        fields.setdefault("next_run_time", trigger.get_next_fire_time(None, start))
        scheduler.add_job("json:dumps", trigger, id=name, **{"args": [[1]], **fields})

    for name, fields in {**CRON_TRIGGERS, **REFUSED}.items():
        add(name, CronTrigger(**fields, timezone=BERLIN))
    for minutes in (20, 95, 1_440):
        trigger = IntervalTrigger(minutes=minutes, start_date=start - timedelta(hours=7, seconds=9), timezone=BERLIN)
        add(f"every {minutes}", trigger)
    for one in varied():
        if one.crontab:
            named = {OWN_NAMES.get(name, name): text for name, text in one.crontab.items()}
            add(one.name, CronTrigger(**named, timezone=one.zone))
        elif one.interval:
            every = {one.interval[1]: one.interval[0]}
            add(one.name, IntervalTrigger(**every, start_date=start - timedelta(hours=7, seconds=9), timezone=one.zone))
    add("date", DateTrigger(start + timedelta(days=2, seconds=17)))
    add(
        "ends",
        IntervalTrigger(
            hours=1, start_date=start + timedelta(hours=1), end_date=start + timedelta(days=1), timezone=BERLIN
        ),
    )
    add("either", OrTrigger([DateTrigger(start + timedelta(days=1)), DateTrigger(start + timedelta(days=2))]))
    add("paused", CronTrigger(hour=3, timezone=BERLIN), next_run_time=None)
    add(
        "with everything",
        CronTrigger(hour=3, jitter=30, timezone=BERLIN),
        next_run_time=CronTrigger(hour=3, timezone=BERLIN).get_next_fire_time(None, start),
        kwargs={"indent": 2},
        max_instances=3,
        coalesce=False,
        misfire_grace_time=120,
    )
    add("not JSON", CronTrigger(hour=3, timezone=BERLIN), args=[{1, 2}])


def runs(scheduler: BackgroundScheduler, start: datetime, end: datetime) -> None:
    """Print the runs of the jobs that are not paused, without their jitter."""
    for job in scheduler.get_jobs():
        if job.next_run_time is not None:
            if hasattr(job.trigger, "jitter"):
                job.trigger.jitter = None
            print_runs(job.id, _runs(job.trigger, job.next_run_time, end))


def _runs(trigger: Any, first: datetime, end: datetime) -> Iterator[datetime]:
    run = first
    while run is not None and run < end:
        yield run
        run = trigger.get_next_fire_time(run, run)


if __name__ == "__main__":
    command, url, *instants = sys.argv[1:]
    {"fill": fill, "runs": runs}[command](scheduler_on(url), *map(datetime.fromisoformat, instants))
