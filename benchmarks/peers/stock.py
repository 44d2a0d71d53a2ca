"""Celery's own PersistentScheduler: the schedules are in the app, the state is in a file."""

from __future__ import annotations

from datetime import timedelta

from celery.schedules import crontab

from benchmarks.peers import given

app = given.make_app("celery.beat:PersistentScheduler")
app.conf.beat_schedule = {
    name: {
        "task": given.TASK,
        "schedule": crontab() if given.CRONTABS else timedelta(days=1),
        "args": (name,),
        "options": {"queue": given.QUEUE},
        "last_run_at": given.LAST_RUN_AT,
    }
    for name in given.NAMES
}
