"""The testing kit, for the tests of apps that use this package.

There are two ways to find out what an app's schedules will do:

    upcoming     from the code alone, in milliseconds: when does this app send what, on this DST night?
    PgBeatTest   one real beat on a real Postgres, moved by hand: what is sent, skipped, caught up, given up?

The kit decides nothing itself. The beat's own dispatcher, Postgres, and Celery up to its `send_task` decide what is
due, what blocks a job and what a message contains. The invariant: a test that does the same at the same set times gets
the same result, including the ids of the jobs.

No other package imports this one.

Example:
    >>> from celery import Celery
    >>> from celery.schedules import crontab
    >>> app = Celery("shop")
    >>> app.conf.beat_schedule = {"nightly": {"task": "shop.report", "schedule": crontab(minute=0, hour=3)}}
    >>> app.conf.timezone = "Europe/Berlin"
    >>> (run,) = upcoming(app, "2026-03-28T12:00Z", "2026-03-29T12:00Z", name="nightly")
    >>> run.due_at == at("2026-03-29 03:00 Europe/Berlin") == at("2026-03-29T01:00Z")
    True
"""

from __future__ import annotations

from celery_pgbeat.testing.ahead import Run, occurrences, upcoming
from celery_pgbeat.testing.instants import at
from celery_pgbeat.testing.kit import PgBeatTest
from celery_pgbeat.testing.recorder import Refused, Sent

__all__ = ["PgBeatTest", "Refused", "Run", "Sent", "at", "occurrences", "upcoming"]
