"""The probe's app with tasks whose `apply_async` sends nothing while a lock is held, as well-known packages do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery import Task
from celery.result import AsyncResult, EagerResult

from tests.harness.probe_app import app

LOCK = "DEDUPLICATING_LOCK"  # the file that is there while the lock is held


class Deduplicating(Task):
    """Sends only while nothing holds the lock."""

    abstract = True

    def apply_async(self, *args: Any, **options: Any) -> Any:
        """Send, or return what there is instead."""
        return self.instead() if Path(os.environ[LOCK]).exists() else super().apply_async(*args, **options)

    def instead(self) -> Any:
        """Return what a caller gets for a message that is not sent."""
        return None


class Singleton(Deduplicating):
    """Returns the result of the task that is under way, as celery-singleton does."""

    abstract = True

    def instead(self) -> Any:
        return AsyncResult("11111111-1111-4111-8111-111111111111", app=app)


class Graceful(Deduplicating):
    """Returns a result of no task, as celery-once does with `graceful`."""

    abstract = True

    def instead(self) -> Any:
        return EagerResult(None, None, "REJECTED")


class Forgetful(Task):
    """Sends at once and returns nothing, as a hook after the commit does where there is no transaction."""

    abstract = True

    def apply_async(self, *args: Any, **options: Any) -> None:
        """Send."""
        super().apply_async(*args, **options)


@app.task(name="app.forgetful", base=Forgetful)
def run_forgetful() -> None:
    """Do nothing."""


@app.task(name="app.later", base=Deduplicating)
def run_later() -> None:
    """Do nothing."""


@app.task(name="app.singleton", base=Singleton)
def run_singleton() -> None:
    """Do nothing."""


@app.task(name="app.graceful", base=Graceful)
def run_graceful() -> None:
    """Do nothing."""
