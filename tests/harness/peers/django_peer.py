"""django-celery-beat: `fill URL START` writes entries by its own models, `runs URL START END` prints their runs.

`seconds URL` writes entries that run each second.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import django
from celery import Celery
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from sqlalchemy.engine import make_url

from tests.harness.peers.entries import CRONTABS, EACH_SECOND, INTERVALS, ZONES, varied
from tests.harness.peers.peer_clock import PeerClock, print_runs

HOUR = timedelta(hours=1)


def set_up(url: str) -> None:
    """Configure Django for a database."""
    parsed = make_url(url)
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": parsed.database,
                "USER": parsed.username,
                "PASSWORD": parsed.password or "",
                "HOST": parsed.host,
                "PORT": parsed.port,
            }
        },
        INSTALLED_APPS=["django_celery_beat"],
        USE_TZ=True,
        TIME_ZONE="UTC",
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    )
    django.setup()


def fill(start: datetime) -> None:
    """Write entries of all kinds."""
    from django_celery_beat import models

    call_command("migrate", verbosity=0)

    def add(name: str, **columns: Any) -> None:
        last = columns.pop("last_run_at", start - timedelta(seconds=3))
        models.PeriodicTask.objects.create(name=name, task="shop.work", **columns)
        models.PeriodicTask.objects.filter(name=name).update(last_run_at=last, date_changed=start - 5 * HOUR)

    for number, (fields, zone) in enumerate(product(CRONTABS, ZONES)):
        named = dict(zip(("minute", "hour", "day_of_month", "month_of_year", "day_of_week"), fields, strict=True))
        add(f"cron {number:02}", crontab=models.CrontabSchedule.objects.create(**named, timezone=zone))
    for every, period in INTERVALS:
        interval = models.IntervalSchedule.objects.create(every=every, period=period)
        add(f"every {every} {period}", interval=interval)
    for one in varied():
        if one.crontab:
            add(one.name, crontab=models.CrontabSchedule.objects.create(**one.crontab, timezone=one.zone))
        elif one.interval:
            every, period = one.interval
            add(one.name, interval=models.IntervalSchedule.objects.create(every=every, period=period))
    hourly = models.IntervalSchedule.objects.create(every=1, period="hours")
    clocked = models.ClockedSchedule.objects.create(clocked_time=start + timedelta(days=2, seconds=17))
    passed = models.ClockedSchedule.objects.create(clocked_time=start - HOUR)
    daily = models.CrontabSchedule.objects.create(minute="0", hour="5", timezone="Europe/Berlin")
    wrong = models.CrontabSchedule.objects.create(minute="0", hour="25", timezone="Europe/Berlin")
    add("clocked", clocked=clocked, one_off=True, last_run_at=None)
    add("clocked in the past", clocked=passed, one_off=True)
    add("never ran", interval=hourly, last_run_at=None)
    add("starts later", interval=hourly, start_time=start + timedelta(days=1, minutes=4), last_run_at=None)
    add("starts later, ran", interval=hourly, start_time=start + timedelta(days=1, minutes=4))
    add("cron starts later", crontab=daily, start_time=start + timedelta(days=3))
    add("expires", interval=hourly, expires=start + timedelta(days=1))
    add("has expired", interval=hourly, expires=start - HOUR)
    add("one off", crontab=daily, one_off=True)
    add("one off, done", crontab=daily, one_off=True, total_run_count=1)
    add("off", crontab=daily, enabled=False)
    add("wrong hour", crontab=wrong)
    add("wrong arguments", crontab=daily, args="[1,")
    add("a header of Celery's", crontab=daily, headers='{"task": "shop.other"}')
    add("celery.backend_cleanup", crontab=daily)
    models.PeriodicTask.objects.filter(name="celery.backend_cleanup").update(task="celery.backend_cleanup")
    add(
        "with everything",
        crontab=daily,
        args='["a", 1]',
        kwargs='{"b": {"c": null}}',
        queue="slow",
        priority=7,
        expire_seconds=90,
        headers='{"tenant": "north"}',
        description="Mails\nthe report.",
    )
    add("routed", crontab=daily, exchange="shop", routing_key="shop.slow", expires=start + timedelta(days=9))


def seconds() -> None:
    """Write the entries that run each second."""
    from django_celery_beat import models

    call_command("migrate", verbosity=0)
    second = models.IntervalSchedule.objects.create(every=1, period="seconds")
    for name in EACH_SECOND:
        models.PeriodicTask.objects.create(name=name, task="app.probe", interval=second, args=f'["{name}"]')


def runs(start: datetime, end: datetime) -> None:
    """Print the runs of the entries that are enabled."""
    from django_celery_beat import models, schedulers

    app = Celery("shop", set_as_current=False)
    clock = PeerClock(start)
    schedulers.ModelEntry._default_now = lambda entry: clock.now.astimezone(app.timezone)
    with transaction.atomic():
        for model in models.PeriodicTask.objects.enabled().order_by("id"):
            clock.now = start
            try:
                entry = schedulers.ModelEntry(model, app=app)
            except ValueError:  # the scheduler leaves it out
                continue
            print_runs(model.name, clock.runs(entry, end))
        transaction.set_rollback(True)


if __name__ == "__main__":
    command, url, *instants = sys.argv[1:]
    set_up(url)
    {"fill": fill, "runs": runs, "seconds": seconds}[command](*map(datetime.fromisoformat, instants))
