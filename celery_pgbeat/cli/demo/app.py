"""The app of the demo's beats and of its worker."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery, Task

from celery_pgbeat import PgBeat, cron, every
from celery_pgbeat.cli.demo.process import QUEUE
from celery_pgbeat.cli.demo.start_log import log_start


class LoggedTask(Task):
    """Logs each start before anything else; the proof counts these logs."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Log the start, and run."""
        log_start(self.request)
        return self.run(*args, **kwargs)


app = Celery("demo", task_cls=LoggedTask)  # the broker is CELERY_BROKER_URL
app.conf.update(
    task_default_queue=os.environ.get(QUEUE, "celery"),
    task_ignore_result=True,
    result_expires=None,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
)
beat = PgBeat(app)  # the database is PGBEAT_URL


# The demo shows the file from here on.
@beat.periodic_task(every("1s"), name="count-visitors", overlap="allow")
@app.task(name="demo.count")
def count() -> None:
    """Is quick."""


@beat.periodic_task(cron("*/2 * * * * *"), name="refresh-prices", overlap="allow")
@app.task(name="demo.refresh")
def refresh() -> None:
    """Is quick, too."""


@beat.periodic_task(every("1s"), name="slow-report")  # overlap="skip" is the default
@app.task(name="demo.report")
def report() -> None:
    """Takes longer than its interval: the ticks meanwhile are recorded as skipped."""
    time.sleep(2.5)
