"""sqlalchemy-celery-beat: `fill URL START` writes entries by its own models, `runs URL START END` prints their runs."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from celery import Celery
from sqlalchemy.sql import select, update
from sqlalchemy_celery_beat import models, schedulers
from sqlalchemy_celery_beat.session import SessionManager

from tests.harness.peers.entries import CRONTABS, INTERVALS, ZONES, varied
from tests.harness.peers.peer_clock import PeerClock, print_runs

SCHEMA = "celery_schema"


def session_on(url: str) -> Any:
    """Open a session, and make the tables."""
    manager = SessionManager()
    engine, session = manager.create_session(url.replace("postgresql://", "postgresql+psycopg2://"), schema=SCHEMA)
    manager.prepare_models(engine, schema=SCHEMA)
    return session


def fill(make: Any, start: datetime) -> None:
    """Write entries of all kinds."""
    with make() as session:

        def add(name: str, schedule: Any, **columns: Any) -> None:
            columns.setdefault("last_run_at", start - timedelta(seconds=3))
            session.add(schedule)
            session.flush()
            session.add(models.PeriodicTask(name=name, task="shop.work", schedule_model=schedule, **columns))
            session.flush()

        for number, (fields, zone) in enumerate(product(CRONTABS, ZONES)):
            named = dict(zip(("minute", "hour", "day_of_month", "month_of_year", "day_of_week"), fields, strict=True))
            add(f"cron {number:02}", models.CrontabSchedule(**named, timezone=zone))
        for every, period in INTERVALS:
            add(f"every {every} {period}", models.IntervalSchedule(every=every, period=models.Period(period)))
        for one in varied():
            if one.crontab:
                add(one.name, models.CrontabSchedule(**one.crontab, timezone=one.zone))
            elif one.interval:
                every, period = one.interval
                add(one.name, models.IntervalSchedule(every=every, period=models.Period(period)))
        add("clocked", models.ClockedSchedule(clocked_time=start + timedelta(days=2, seconds=17)), one_off=True)
        daily = models.CrontabSchedule(minute="0", hour="5", timezone="Europe/Berlin")
        add("off", daily, enabled=False)
        add("one off", daily, one_off=True)
        add("expires", daily, expires=start + timedelta(days=2))
        add(
            "with everything",
            daily,
            args='["a", 1]',
            kwargs='{"b": null}',
            queue="slow",
            priority=7,
            expire_seconds=90,
            headers='{"tenant": "north"}',
            exchange="shop",
            routing_key="shop.slow",
        )
        add("lost its schedule", daily)
        session.commit()
        session.execute(
            update(models.PeriodicTask).where(models.PeriodicTask.name == "lost its schedule").values(schedule_id=9_999)
        )
        session.commit()


def runs(make: Any, start: datetime, end: datetime) -> None:
    """Print the runs of the entries that are enabled."""
    app = Celery("shop", set_as_current=False)
    clock = PeerClock(start)
    schedulers.ModelEntry._default_now = lambda entry: clock.now
    with make() as session:
        for model in session.scalars(select(models.PeriodicTask).order_by(models.PeriodicTask.id)):
            if model.enabled and model.name != "lost its schedule":
                clock.now = start
                model.no_changes = True
                schedulers.ModelEntry.save = lambda entry, fields=(): None
                print_runs(model.name, clock.runs(schedulers.ModelEntry(model, session, app=app), end))
        session.rollback()


if __name__ == "__main__":
    command, url, *instants = sys.argv[1:]
    {"fill": fill, "runs": runs}[command](session_on(url), *map(datetime.fromisoformat, instants))
