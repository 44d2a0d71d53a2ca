"""Detects that a pool process has died if Celery has not noticed.

Celery's event loop learns of a child's death when a pipe closes, and then checks once for a process to reap. The kernel
closes the pipe first: on a busy machine Celery checks too early, finds nothing, and checks again when another child
dies, or after 5 s. Until then Celery counts the job as running, and the worker must not send a heartbeat for it.

So the main process checks itself, once a second and only while it runs jobs, and makes Celery check again when a child
is dead. Celery decides what becomes of the job, as always: it may send its message back.
"""

from __future__ import annotations

import os
from typing import Any

from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from celery_pgbeat.worker.start.message import ReceivedJobs

EVERY = 1.0  # seconds between two checks


class PoolWatch:
    """The periodic duty that checks the processes that run this worker's jobs."""

    every = EVERY

    def __init__(self, received_jobs: ReceivedJobs, consumer: Any) -> None:
        self._received_jobs = received_jobs
        self._consumer = consumer

    def run(self, queries: WorkerQueries) -> None:  # noqa: ARG002  this duty needs no Postgres
        """Make Celery maintain its pool if a process has died, in the thread that consumes messages."""
        if self._consumer.hub is None:
            return  # without an event loop the pool has a supervisor thread of its own
        if any(self._has_died(request) for _, request in self._received_jobs.under_way()):
            self._consumer.call_soon(self._consumer.pool.maintain_pool)

    def shutdown(self, queries: WorkerQueries) -> None:
        """Do nothing: Celery maintains its pool while it shuts down."""

    def living(self) -> list[Start]:
        """Return the starts whose process is alive, also those that Celery has cancelled and that still unwind."""
        begun = [*self._received_jobs.under_way(), *self._received_jobs.cancelled()]
        return [start for start, request in begun if not self._has_died(request)]

    def _has_died(self, request: Any) -> bool:
        return has_processes(self._consumer.pool) and is_dead(request.worker_pid)


def has_processes(pool: Any) -> bool:
    """Whether a pool runs its tasks in processes of their own: by Celery's own flag."""
    return bool(getattr(pool, "uses_semaphore", False))


def is_dead(pid: int) -> bool:
    """Whether a child has died; the child is not reaped."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has been reaped already
        return True
    except AttributeError:  # macOS before Python 3.13 has no waitid: only Celery checks there
        return False
