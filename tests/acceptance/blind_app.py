"""The app of a worker whose Celery misses the end of a pool process: it looks too early, and not again."""

from __future__ import annotations

from typing import Any

from celery.concurrency.asynpool import AsynPool

from tests.harness.worker_app import app

__all__ = ["app"]


def _look_too_early(self: Any, hub: Any, process: Any) -> None:
    self._untrack_child_process(process, hub)


AsynPool._event_process_exit = _look_too_early
AsynPool.timers = {}
