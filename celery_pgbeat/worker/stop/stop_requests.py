"""Carries out requests to stop running jobs: `cancel` (the task stops itself) or `terminate` (its process is ended).

The requests are in the rows of the jobs. A worker's main process reads those of its own jobs once a second, and only
while it runs some; the thread that consumes messages does not wait for this.

Cancel: send a signal to the process that runs the job, again at each check, until the job has ended (`running.py`).
Terminate: call Celery's own `Request.terminate`, in the thread that consumes messages, because it acknowledges the
message. The process may still unwind (`finally`, `with`); only when it has exited, or has returned a result after all,
does the job become final, and the next one may start. After `KILL_AFTER` the process is killed. A pool without
processes cannot terminate a job: its task can only read `current().cancelled`.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any
from weakref import WeakSet

from celery.worker import state

from celery_pgbeat.postgres.worker_queries import Start, StopRequest, WorkerQueries
from celery_pgbeat.worker.report.pool_watch import has_processes
from celery_pgbeat.worker.report.reports import Killed, Report, write
from celery_pgbeat.worker.start.message import ReceivedJobs
from celery_pgbeat.worker.stop.running import send_stop_signal

EVERY = 1.0  # seconds between two reads: a job learns of a request within twice that
KILL_AFTER = 5.0  # seconds that a terminated process may take to unwind before it is killed

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Termination:
    """A start whose process got a signal to end, and is not known to have exited."""

    start: Start
    process: int
    is_over: Callable[[], bool]
    kill_at: float
    killed: bool = False
    reported: bool = False


class StopRequests:
    """The periodic duty that reads stop requests and carries them out."""

    every = EVERY

    def __init__(
        self, worker: str, received_jobs: ReceivedJobs, consumer: Any, put: Callable[[Report], object]
    ) -> None:
        self._put = put
        self._worker = worker
        self._received_jobs = received_jobs
        self._consumer = consumer
        self._terminations: dict[Start, Termination] = {}
        self._signalled: WeakSet[Any] = WeakSet()
        self._has_warned = False

    def run(self, queries: WorkerQueries) -> None:
        """Read the requests for what runs, carry them out, and report what has ended."""
        for termination in list(self._terminations.values()):
            self._follow(termination)
        running = {start.token: (start, request) for start, request in self._received_jobs.under_way()}
        if running:
            for request in queries.stop_requests(self._worker):
                if request.token in running:
                    self._carry_out(request, *running[request.token])

    def shutdown(self, queries: WorkerQueries) -> None:
        """Report the jobs that were being terminated while the worker shuts down."""
        for termination in list(self._terminations.values()):
            write(self._report(termination), queries)
            self._terminations.pop(termination.start, None)

    def is_ending(self, start: Start) -> bool:
        """Whether the process of a start got a signal to end, so that its end is reported from here."""
        return start in self._terminations

    def _carry_out(self, request: StopRequest, start: Start, received: Any) -> None:
        if received not in self._signalled:
            self._signalled.add(received)
            logger.info("Job %s is asked to stop (%s)", start.job, request.kind, extra={"action": request.kind})
        if not has_processes(self._consumer.pool):
            if request.kind == "terminate" and not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "The pool of this worker cannot terminate jobs, job %s for one: their tasks have to look at "
                    "current().cancelled, or run in a prefork pool",
                    start.job,
                )
        elif request.kind == "terminate":
            self._consumer.call_soon(self._terminate, start, received)
        else:
            send_stop_signal(received.worker_pid)

    def _terminate(self, start: Start, request: Any) -> None:
        """End the process that runs a request; called in the thread that consumes messages."""
        if request not in state.active_requests:
            return
        result = request._apply_result and request._apply_result()
        is_over = result.ready if result is not None else lambda: True
        self._terminations[start] = Termination(start, request.worker_pid, is_over, monotonic() + KILL_AFTER)
        try:
            request.terminate(self._consumer.pool)
        except Exception:  # the process has its signal; a result backend that is away must not end this thread
            logger.exception("Job %s was terminated, and Celery could not record that", start.job)

    def _follow(self, termination: Termination) -> None:
        if termination.reported:
            return
        if termination.is_over():
            # Through the queue, so that the process's own report is written first.
            termination.reported = True
            self._put(self._report(termination))
        elif monotonic() >= termination.kill_at:
            self._consumer.call_soon(self._kill, termination)

    def _kill(self, termination: Termination) -> None:
        """Kill a process that did not end in time; a process that has returned meanwhile may run another job by now."""
        if not termination.killed and not termination.is_over():
            termination.killed = True
            logger.warning("Job %s did not end within %.0f s: its process is killed", termination.start.job, KILL_AFTER)
            self._consumer.pool.terminate_job(termination.process, signal.SIGKILL)

    def _report(self, termination: Termination) -> Killed:
        start = termination.start
        return Killed(start, "revoked", "its process was ended", done=lambda: self._terminations.pop(start, None))
