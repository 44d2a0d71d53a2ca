"""Only tasks: schedule.sql says when they run. Configured by settings alone, without an import of celery_pgbeat."""

import os

from celery import Celery

app = Celery("shop")  # the broker is CELERY_BROKER_URL
app.conf.update(
    beat_scheduler="pgbeat",
    pgbeat_url=os.environ["PGBEAT_URL"],
    imports=("celery_pgbeat.worker",),  # starts each job once, and reports how it ended
    timezone="Europe/Berlin",
)


@app.task(name="shop.poll_inbox")
def poll_inbox(box: str) -> str:
    """Look for mail."""
    return f"nothing new in {box}"


@app.task(name="shop.report")
def report(kind: str = "short") -> str:
    """Write a report."""
    return f"the {kind} report"
