"""The tasks that the tests of the worker need beside those of the probe app."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from celery import Task, signals
from celery.exceptions import Ignore, Reject, SoftTimeLimitExceeded

from celery_pgbeat import current
from celery_pgbeat.worker.start import guard
from celery_pgbeat.worker.stop import stop_requests
from tests.harness import probe
from tests.harness.probe_app import DATABASE, app
from tests.harness.probe_app import _Recorded as Recorded

if "WORKER_START_TIMEOUT" in os.environ:
    guard.START_TIMEOUT = float(os.environ["WORKER_START_TIMEOUT"])  # seconds instead of ten
if "WORKER_KILL_AFTER" in os.environ:
    stop_requests.KILL_AFTER = float(os.environ["WORKER_KILL_AFTER"])


@app.task(name="app.ignore", bind=True)
def run_ignore(self: Task, label: str) -> None:
    """Raise Ignore of its own."""
    with Recorded(self, label):
        raise Ignore()


@app.task(name="app.reject", bind=True)
def run_reject(self: Task, label: str) -> None:
    """Reject its message for good."""
    with Recorded(self, label):
        raise Reject("unwanted", requeue=False)


@app.task(name="app.reject_early", bind=True)
def run_reject_early(self: Task, label: str) -> None:
    """Ask for its message back, which was acknowledged long ago."""
    with Recorded(self, label):
        raise Reject("again", requeue=True)


@app.task(name="app.reject_once", bind=True, acks_late=True)
def run_reject_once(self: Task, label: str, flag: str) -> str:
    """Give its message back the first time."""
    with Recorded(self, label):
        if not Path(flag).exists():
            Path(flag).touch()
            raise Reject("later", requeue=True)
    return label


@app.task(name="app.die_once", bind=True, acks_late=True, reject_on_worker_lost=True)
def run_die_once(self: Task, label: str, flag: str) -> str:
    """Kill its process the first time."""
    with Recorded(self, label):
        if not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), 9)
    return label


@app.task(name="app.wait_once", bind=True, acks_late=True)
def run_wait_once(self: Task, label: str, flag: str, unwinding: float = 0) -> str:
    """Run for a minute the first time, and take some seconds to unwind."""
    with Recorded(self, label):
        if not Path(flag).exists():
            Path(flag).touch()
            try:
                time.sleep(60)
            finally:
                time.sleep(unwinding)
    return label


@app.task(name="app.wait_early", bind=True)
def run_wait_early(self: Task, label: str) -> None:
    """Run for a minute; its message is acknowledged before."""
    with Recorded(self, label):
        time.sleep(60)


@app.task(name="app.die_and_retry", bind=True, acks_late=True, default_retry_delay=1)
def run_die_and_retry(self: Task, label: str, flag: str) -> str:
    """Kill its process the first time; Celery 5.7 sends a retry."""
    return str(run_die_once.run.__func__(self, label, flag))


run_die_and_retry.retry_on_worker_lost = True


@app.task(name="app.exit", bind=True)
def run_exit(self: Task, label: str) -> None:
    """Leave by sys.exit()."""
    with Recorded(self, label):
        sys.exit(3)


@app.task(name="app.unwind", bind=True)
def run_unwind(self: Task, label: str, seconds: float) -> None:
    """Turn whatever ends it into an ordinary failure."""
    try:
        with Recorded(self, label):
            time.sleep(seconds)
    except BaseException as error:
        raise RuntimeError("unwound") from error


@app.task(name="app.retry_at", bind=True)
def run_retry_at(self: Task, label: str) -> str:
    """Ask for a retry at an instant."""
    with Recorded(self, label):
        if self.request.retries == 0:
            raise self.retry(eta=datetime.now(timezone.utc) + timedelta(minutes=10))
    return label


@app.task(name="app.retry_and_go_on", bind=True)
def run_retry_and_go_on(self: Task, label: str) -> str:
    """Send a retry and return all the same."""
    with Recorded(self, label):
        if self.request.retries == 0:
            self.retry(countdown=2, throw=False)
    return label


@app.task(name="app.replace", bind=True)
def run_replace(self: Task, label: str) -> Any:
    """Put another task in its place."""
    with Recorded(self, label):
        return self.replace(app.signature("app.probe", (f"{label}-instead",)))


@app.task(name="app.heeding", bind=True)
def run_heeding(self: Task, label: str, seconds: float, pause: float = 0.1) -> str:
    """Look again and again whether it is asked to end, and return then."""
    with Recorded(self, label):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if current().cancelled:
                time.sleep(pause * 20)
                return "in good order"
            time.sleep(pause)
    return "in its own time"


@app.task(name="app.caught", bind=True, max_retries=5)
def run_caught(self: Task, label: str, then: str) -> str:
    """Catch SoftTimeLimitExceeded, and then do something else."""
    with Recorded(self, label):
        try:
            time.sleep(60)
        except SoftTimeLimitExceeded as limit:
            if then == "retry":
                raise self.retry(countdown=1) from limit
            time.sleep(2.5)  # long enough for further rings
    return then


@app.task(name="app.unwinding", bind=True)
def run_unwinding(self: Task, label: str, seconds: float) -> None:
    """Take its time to unwind."""
    with Recorded(self, label):
        try:
            time.sleep(60)
        finally:
            time.sleep(seconds)


@app.task(name="app.undying", bind=True)
def run_undying(self: Task, label: str) -> None:
    """Survive whatever can be survived."""
    with Recorded(self, label):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                time.sleep(60)
            except BaseException:  # noqa: BLE001
                continue


@app.task(name="app.quota", bind=True)
def run_quota(self: Task, label: str) -> None:
    """Work for as long as it may."""
    with Recorded(self, label):
        while (quota := current().quota) is not None and quota.total_seconds() > 1.5:
            time.sleep(0.05)


@app.task(name="app.cancel_itself", bind=True)
def run_cancel_itself(self: Task, label: str, at: int) -> None:
    """Have no further run after this many."""
    with Recorded(self, label):
        if len(probe.Probe(os.environ[DATABASE]).runs(label)) == at:
            current().cancel("it has run often enough")


@app.task(name="app.fail_but", bind=True)
def run_fail_but(self: Task, label: str, good: list[int]) -> None:
    """Fail at each run but those of these numbers."""
    with Recorded(self, label):
        if len(probe.Probe(os.environ[DATABASE]).runs(label)) not in good:
            raise RuntimeError("as ever")


@app.task(name="app.snooze_itself", bind=True)
def run_snooze_itself(self: Task, label: str, seconds: float) -> None:
    """Have no run for this time after the first."""
    with Recorded(self, label):
        if len(probe.Probe(os.environ[DATABASE]).runs(label)) == 1:
            current().snooze(seconds)


@app.task(name="app.reschedule_itself", bind=True)
def run_reschedule_itself(self: Task, label: str, schedule: str) -> None:
    """Run at other times from now on."""
    with Recorded(self, label):
        current().reschedule(schedule)


class Called(Task):
    """A task with a `__call__` that never comes to `run`."""

    name = "app.called"
    abstract = False

    def __call__(self, label: str) -> str:
        with Recorded(self, label):
            return label


class Wrapped(Task):
    """A base with a `__call__` around `run` and a `before_start`, as people write them."""

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        with Recorded(self, f"{args[0]}-before"):
            pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with Recorded(self, f"{args[0]}-call"):
            return super().__call__(*args, **kwargs)


app.register_task(Called())


@app.task(name="app.wrapped", bind=True, base=Wrapped)
def run_wrapped(self: Task, label: str) -> str:
    """Run inside a custom `__call__`."""
    with Recorded(self, label):
        return label


@app.task(name="app.caller", bind=True)
def run_caller(self: Task, label: str) -> str:
    """Call other tasks as functions, by every way there is."""
    with Recorded(self, label):
        run_plain(f"{label}-called")
        run_plain.run(f"{label}-run")
        run_plain.apply((f"{label}-applied",), headers={"pgbeat": self.request.pgbeat})
    return label


@app.task(name="app.plain", bind=True)
def run_plain(self: Task, label: str) -> str:
    """Record a run, even one that no message asked for."""
    values = dict.fromkeys(("periodic_task", "origin", "scheduled_for", "worker"))
    probe.begin(os.environ[DATABASE], {**values, "job": "none", "label": label, "attempt": 0, "pid": os.getpid()})
    return label


@signals.celeryd_after_setup.connect
def _register_late(**_: Any) -> None:
    @app.task(name="app.late", bind=True)
    def run_late(self: Task, label: str) -> str:
        with Recorded(self, label):
            return label
