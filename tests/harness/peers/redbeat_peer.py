"""RedBeat: `fill URL START` writes entries by its own classes, `runs URL START END` prints their runs.

`seconds URL` writes entries that run each second.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from typing import Any

from celery.schedules import crontab, schedule
from dateutil.rrule import MO, WE
from redbeat import RedBeatSchedulerEntry, schedulers
from redbeat.schedules import rrule

from tests.harness.peers.entries import CRONTABS, EACH_SECOND, INTERVALS, varied
from tests.harness.peers.peer_clock import PeerClock, print_runs
from tests.harness.peers.shop_in_berlin import app

EAST = timezone(timedelta(hours=2))


def set_up(url: str) -> None:
    """Configure the app for a Redis."""
    app.conf.redbeat_redis_url = url


def fill(start: datetime) -> None:
    """Write entries of all kinds."""
    last = start - timedelta(seconds=3)

    def add(name: str, times: Any, last_run_at: datetime | None = last, **fields: Any) -> None:
        entry = RedBeatSchedulerEntry(name, "shop.work", times, app=app, **fields)
        entry.last_run_at = last_run_at
        entry.save()

    for number, (minute, hour, day, month, weekday) in enumerate(CRONTABS):
        add(
            f"cron {number:02}",
            crontab(minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday, app=app),
        )
    for every, unit in INTERVALS:
        add(f"every {every} {unit}", schedule(timedelta(**{unit: every}), app=app))
    for one in varied():
        if one.crontab:
            add(one.name, crontab(**one.crontab, app=app))
        elif one.interval:
            add(one.name, schedule(timedelta(**{one.interval[1]: one.interval[0]}), app=app))
    add("rule of days", rrule("DAILY", dtstart=start - timedelta(days=9), interval=2, byhour=[9, 17], app=app))
    add("rule with a zone", rrule("DAILY", dtstart=start.astimezone(EAST), byhour=1, byminute=30, bysecond=0, app=app))
    add("rule of weekdays", rrule("WEEKLY", dtstart=start, byweekday=(MO, WE), byhour=6, wkst=MO, app=app))
    add(
        "rule with an end",
        rrule("HOURLY", dtstart=start + timedelta(hours=1), until=start + timedelta(hours=30), app=app),
    )
    add("rule with a count", rrule("HOURLY", dtstart=start - timedelta(hours=4, minutes=1), count=9, app=app))
    add("easter", rrule("YEARLY", dtstart=start, byeaster=0, app=app))
    add("half an hour", rrule("DAILY", dtstart=start.astimezone(timezone(timedelta(minutes=330))), app=app))
    daily = crontab(minute=0, hour=5, app=app)
    add("off", daily, enabled=False)
    add("never ran", schedule(3600, app=app), None)
    add(
        "with everything",
        daily,
        args=[1, datetime(2026, 1, 1, tzinfo=timezone.utc)],
        kwargs={"b": [None]},
        options={"queue": "slow", "priority": 3, "expires": 60, "headers": {"tenant": "north"}, "routing_key": "x"},
    )
    add("linked", daily, options={"link": "x"})
    add("of code", daily)
    add("of code too", daily)
    client = schedulers.get_redis(app)
    client.sadd(app.redbeat_conf.statics_key, "of code")
    client.hset("redbeat:broken", "definition", '{"name": "broken", "task": "shop.work", "schedule": 7}')
    client.zadd(app.redbeat_conf.schedule_key, {"redbeat:broken": 1, "redbeat:gone": 2})


def seconds() -> None:
    """Write the entries that run each second."""
    for name in EACH_SECOND:
        RedBeatSchedulerEntry(name, "app.probe", schedule(1, app=app), args=[name], app=app).save()


def runs(start: datetime, end: datetime) -> None:
    """Print the runs of the entries that are enabled."""
    clock = PeerClock(start)
    RedBeatSchedulerEntry._default_now = lambda entry: clock.now.astimezone(app.timezone)
    client = schedulers.get_redis(app)
    for key in client.zrange(app.redbeat_conf.schedule_key, 0, -1):
        clock.now = start
        if key in ("redbeat:broken", "redbeat:gone"):
            continue
        entry = RedBeatSchedulerEntry.from_key(key, app=app)
        stored = client.hget(key, "meta")
        if entry.enabled:
            entry.schedule.app = app
            print_runs(entry.name, clock.runs(entry, end))
        client.hset(key, "meta", stored)


if __name__ == "__main__":
    command, url, *instants = sys.argv[1:]
    set_up(url)
    {"fill": fill, "runs": runs, "seconds": seconds}[command](*map(datetime.fromisoformat, instants))
