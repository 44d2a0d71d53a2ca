"""A Celery app for the tests' own processes, configured by the environment that `Node` gives them.

Further tasks: a module that imports `app` from here and adds them, given to `Cluster.beat` and `.worker` as `app=`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

from celery import Celery, Task
from celery.exceptions import SoftTimeLimitExceeded

from tests.harness import faults, probe

BROKER = "PROBE_BROKER"
DATABASE = "PROBE_DATABASE"  # where the table `probe` is; never through a pooler that a test takes away
SETTINGS = "PROBE_SETTINGS"  # JSON, over the settings below
FAULTS = "PROBE_FAULTS"  # JSON, see faults.py


class ProbeFailed(Exception):
    """Raised by a task that is asked to fail."""


def make_app() -> Celery:
    """Make the app from the environment."""
    app = Celery("probe", broker=os.environ.get(BROKER, "memory://"))
    app.conf.update(
        beat_scheduler="pgbeat",
        pgbeat_url=os.environ.get("PGBEAT_URL"),
        imports=("celery_pgbeat.worker",),
        task_track_started=True,
        broker_connection_retry_on_startup=True,
        result_expires=None,  # no celery.backend_cleanup among the rows that a test counts
    )
    app.conf.update(json.loads(os.environ.get(SETTINGS, "{}")))
    return app


app = make_app()
faults.apply(os.environ.get(FAULTS, "[]"))


class _Recorded:
    """Records the start of a run when it is entered and its end when it is left, by whatever way a process can see."""

    def __init__(self, task: Task, label: str) -> None:
        request = task.request
        header = request.get("pgbeat") or {}
        self._id = probe.begin(
            os.environ[DATABASE],
            {
                "job": request.id,
                "periodic_task": header.get("periodic_task"),
                "label": label,
                "origin": header.get("origin"),
                "scheduled_for": header.get("scheduled_for"),
                "attempt": request.retries,
                "pid": os.getpid(),
                "worker": request.hostname,
            },
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        probe.end(os.environ[DATABASE], self._id, failed=kind is not None)


@app.task(name="app.probe", shared=False, bind=True)
def run_probe(self: Task, label: str, sleep: float = 0, fail: bool = False) -> str:
    """Record a run of this many seconds, and fail at its end if asked to."""
    with _Recorded(self, label):
        time.sleep(sleep)
        if fail:
            raise ProbeFailed(label)
    return label


@app.task(
    name="app.flaky",
    shared=False,
    bind=True,
    autoretry_for=(ProbeFailed,),
    retry_kwargs={"countdown": 1, "max_retries": 10},
)
def run_flaky(self: Task, label: str, failures: int) -> str:
    """Fail this many times, one second apart, then succeed."""
    with _Recorded(self, label):
        if self.request.retries < failures:
            raise ProbeFailed(label)
    return label


@app.task(name="app.die", shared=False, bind=True)
def run_die(self: Task, label: str) -> None:
    """Kill the process that runs it."""
    with _Recorded(self, label):
        os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="app.stubborn", shared=False, bind=True)
def run_stubborn(self: Task, label: str, seconds: float) -> str:
    """Run this many seconds and ignore the soft time limit."""
    with _Recorded(self, label):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                time.sleep(max(0.0, until - time.monotonic()))
            except SoftTimeLimitExceeded:
                continue
    return label
