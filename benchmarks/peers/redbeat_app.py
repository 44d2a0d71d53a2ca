"""celery-redbeat: the schedules are in Redis."""

from __future__ import annotations

from datetime import timedelta

from celery.schedules import crontab, schedule
from redbeat import RedBeatSchedulerEntry

from benchmarks.peers import given

app = given.make_app("redbeat.RedBeatScheduler")
app.conf.update(redbeat_redis_url=given.STATE, redbeat_redis_options={})


def fill() -> None:
    """Give it its schedules."""
    when = crontab(app=app) if given.CRONTABS else schedule(timedelta(days=1), app=app)
    for name in given.NAMES:
        RedBeatSchedulerEntry(
            name,
            given.TASK,
            when,
            args=[name],
            options={"queue": given.QUEUE},
            app=app,
            last_run_at=given.LAST_RUN_AT,
        ).save()


if __name__ == "__main__":
    fill()
