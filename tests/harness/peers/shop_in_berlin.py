"""An app in Berlin whose code declares one entry."""

from __future__ import annotations

from celery import Celery

app = Celery("shop", set_as_current=False)
app.conf.timezone = "Europe/Berlin"
app.conf.beat_schedule = {"of code too": {"task": "shop.work", "schedule": 3600}}
