"""The probe's app with tasks that raise, as they are sent, what is no `Exception`."""

from __future__ import annotations

import asyncio
from typing import Any

from celery import Task
from celery.signals import before_task_publish

from tests.harness.probe_app import app


class Quits(Task):
    """Ends the thread that sends it."""

    def apply_async(self, *_args: Any, **_options: Any) -> Any:
        """Do not send."""
        raise SystemExit("no licence")


class IsCancelled(Task):
    """Fails as a coroutine does that is cancelled."""

    def apply_async(self, *_args: Any, **_options: Any) -> Any:
        """Do not send."""
        raise asyncio.CancelledError("cancelled")


@app.task(name="app.quits", base=Quits)
def run_quits() -> None:
    """Never run."""


@app.task(name="app.cancelled", base=IsCancelled)
def run_cancelled() -> None:
    """Never run."""


@app.task(name="app.interrupted")
def run_interrupted() -> None:
    """Never run."""


@before_task_publish.connect(sender="app.interrupted", weak=False)
def interrupt(**_: Any) -> None:
    """Raise what Ctrl-C does."""
    raise KeyboardInterrupt("interrupted")
