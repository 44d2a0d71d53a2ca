"""Installs the worker's parts in a process: the app's context, the guards, the signal handlers."""

from __future__ import annotations

import atexit
import logging
from typing import Any

from celery import bootsteps, current_app, signals

from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.context import ATTRIBUTE, WorkerContext, context_of
from celery_pgbeat.worker.report import parent_signals, tracker
from celery_pgbeat.worker.report.pool_watch import has_processes
from celery_pgbeat.worker.start.guard import guard

logger = logging.getLogger(__name__)


def install_in_process(app: Any, main: bool) -> None:
    """Give the app its context if it has a pgbeat_url, and each of its tasks a guard."""
    if ATTRIBUTE not in vars(app):
        setattr(app, ATTRIBUTE, _made_context(app, main))
        _connect_signals()
    context = context_of(app)
    if context is None:
        return
    if main:
        context.become_main()
        app.steps["consumer"].add(CloseBeforeChannel)
    for task in list(app.tasks.values()):
        guard(task, context)


def _made_context(app: Any, main: bool) -> WorkerContext | None:
    settings = Settings.from_mapping(app.conf)
    if settings.url is not None:
        return WorkerContext(app, settings)
    if main:
        logger.warning(
            "%s: this worker neither guards nor tracks periodic tasks. Put it into the Celery configuration or the "
            "environment variable PGBEAT_URL",
            settings.without_url,
        )
    return None


class CloseBeforeChannel(bootsteps.StartStopStep):
    """Writes what becomes of the jobs of a worker that ends before the broker gets their messages back.

    Otherwise another worker may get such a message first, find its job running, and drop it as a second copy. The steps
    are shut down in the reverse order of what they require, when the pool has ended. A pool without processes may still
    run tasks then.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def shutdown(self, consumer: Any) -> None:
        """Close the app's context."""
        context = context_of(consumer.app)
        if context is not None and has_processes(consumer.pool):
            context.close()


def _connect_signals() -> None:
    handlers = {
        signals.before_task_publish: tracker.on_publish,
        signals.task_postrun: tracker.on_postrun,
        signals.task_received: parent_signals.on_received,
        signals.task_failure: parent_signals.on_failure,
        signals.task_revoked: parent_signals.on_revoked,
        signals.task_retry: parent_signals.on_retry,
        signals.task_unknown: parent_signals.on_unknown,
        signals.task_rejected: parent_signals.on_rejected,
        signals.worker_ready: _on_worker_ready,
        signals.worker_shutdown: _on_worker_shutdown,
        signals.worker_process_shutdown: _on_worker_process_shutdown,
    }
    for signal, handler in handlers.items():
        signal.connect(handler, dispatch_uid=f"celery_pgbeat.{handler.__name__}")


def _on_worker_ready(sender: Any, **_: Any) -> None:
    context = context_of(sender.app)
    if context is not None:
        context.open(sender)
        # A cold shutdown sends no worker_shutdown; pool processes never run their atexit handlers.
        atexit.register(context.close)


def _on_worker_shutdown(sender: Any, **_: Any) -> None:
    context = context_of(sender.app)
    if context is not None:
        context.close()


def _on_worker_process_shutdown(**_: Any) -> None:
    context = context_of(current_app._get_current_object())
    if context is not None:
        context.close()
