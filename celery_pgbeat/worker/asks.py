"""Passes on what running jobs are asked: that they end, by themselves (cancel) or not (terminate).

The asks are in the rows. A worker's main process reads those of its own jobs once a second, and only while it runs
some; the thread that consumes messages waits for nothing.

Cancel: the process that runs the job is rung up, again in each round, until the job has ended (`running.py`).
Terminate: Celery's own way to terminate a request, in the thread that consumes messages, because it acknowledges the
message. The process may still unwind (`finally`, `with`); only when it is gone, or has answered all the same, the job
is final and the next one may start. One that takes longer than `MERCY` is killed. In a pool without processes nobody
can be ended by another: there a task sees `current().cancelled`, and that is all.
"""

from __future__ import annotations

import logging
import signal
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any
from weakref import WeakSet

from celery.worker import state

from celery_pgbeat.postgres.reports import Ask, Reports, Start
from celery_pgbeat.worker.kept import Report
from celery_pgbeat.worker.message import Entrusted
from celery_pgbeat.worker.running import ring

EVERY = 1.0  # seconds between two looks: a job hears within twice that
MERCY = 5.0  # seconds that a terminated process may take to unwind before it is killed

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Ending:
    """A start whose process was told to end, and is not known to be gone."""

    start: Start
    process: int
    is_over: Callable[[], bool]
    mercy_until: float
    killed: bool = False
    reported: bool = False


class Asks:
    """The rounds of a worker's main process in which it looks for asks."""

    every = EVERY

    def __init__(
        self, worker: str, entrusted: Entrusted, consumer: Any, put: Callable[[Report, uuid.UUID], object]
    ) -> None:
        self._put = put
        self._worker = worker
        self._entrusted = entrusted
        self._consumer = consumer
        self._endings: dict[Start, Ending] = {}
        self._told: WeakSet[Any] = WeakSet()
        self._has_warned = False

    def go(self, reports: Reports) -> None:
        """Read the asks of what runs, pass them on, and report what has been ended."""
        for ending in list(self._endings.values()):
            self._follow(ending)
        running = {start.token: (start, request) for start, request in self._entrusted.under_way()}
        if running:
            for ask in reports.asked(self._worker):
                if ask.token in running:
                    self._pass_on(ask, *running[ask.token])

    def end(self, reports: Reports) -> None:
        """Report what was being ended while the worker ends."""
        for ending in list(self._endings.values()):
            self._report(ending, reports)

    def is_ending(self, start: Start) -> bool:
        """Whether a start was told to end, and its end will be reported from here."""
        return start in self._endings

    def _pass_on(self, ask: Ask, start: Start, request: Any) -> None:
        if request not in self._told:
            self._told.add(request)
            logger.info("Job %s is asked to end (%s)", start.job, ask.kind, extra={"action": ask.kind})
        if not has_processes(self._consumer.pool):
            if ask.kind == "terminate" and not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "The pool of this worker cannot terminate jobs, job %s for one: their tasks have to look at "
                    "current().cancelled, or run in a prefork pool",
                    start.job,
                )
        elif ask.kind == "terminate":
            self._consumer.call_soon(self._terminate, start, request)
        else:
            ring(request.worker_pid)

    def _terminate(self, start: Start, request: Any) -> None:
        """End the process that runs a request; called in the thread that consumes messages."""
        if request not in state.active_requests:
            return
        result = request._apply_result and request._apply_result()
        is_over = result.ready if result is not None else lambda: True
        self._endings[start] = Ending(start, request.worker_pid, is_over, monotonic() + MERCY)
        try:
            request.terminate(self._consumer.pool)
        except Exception:  # the process has its signal; a result backend that is away must not end this thread
            logger.exception("Job %s was terminated, and Celery could not say so", start.job)

    def _follow(self, ending: Ending) -> None:
        if ending.reported:
            return
        if ending.is_over():
            # By the box, which lets what the process itself has said go first.
            ending.reported = True
            self._put(partial(self._report, ending), ending.start.job)
        elif monotonic() >= ending.mercy_until:
            self._consumer.call_soon(self._kill, ending)

    def _kill(self, ending: Ending) -> None:
        """Kill a process that did not end in time; what has answered meanwhile may run another job by now."""
        if not ending.killed and not ending.is_over():
            ending.killed = True
            logger.warning("Job %s did not end within %.0f s: its process is killed", ending.start.job, MERCY)
            self._consumer.pool.terminate_job(ending.process, signal.SIGKILL)

    def _report(self, ending: Ending, reports: Reports) -> None:
        revoke(reports, ending.start, "its process was ended")
        self._endings.pop(ending.start, None)


def has_processes(pool: Any) -> bool:
    """Whether a pool runs its tasks in processes of their own: by Celery's own mark of it."""
    return bool(getattr(pool, "uses_semaphore", False))


def revoke(reports: Reports, start: Start, error: str) -> None:
    """Finish a terminated start, or overrule what its process said while it unwound."""
    if not reports.finish(start, "revoked", error):
        reports.overrule(start, error)
