"""Sees that a process of the pool has died where Celery has not.

Celery's event loop hears of a child's end by the closing of a pipe, and looks once whether there is a process to be
waited for. The kernel closes the pipe first: on a busy machine Celery looks too early, finds nobody, and looks again
when another child dies, or after 5 s. Until then the job counts as running, and its worker must not say so.

So the main process looks itself, once a second and only while it runs jobs, and has Celery look again when there is
somebody to be found. What becomes of the job Celery decides, as always: it may send its message back.
"""

from __future__ import annotations

import os
from typing import Any

from celery_pgbeat.postgres.reports import Reports, Start
from celery_pgbeat.worker.asks import has_processes
from celery_pgbeat.worker.message import Entrusted

EVERY = 1.0  # seconds between two looks


class Children:
    """The rounds of a worker's main process in which it looks after the processes that run its jobs."""

    every = EVERY

    def __init__(self, entrusted: Entrusted, consumer: Any) -> None:
        self._entrusted = entrusted
        self._consumer = consumer

    def go(self, reports: Reports) -> None:  # noqa: ARG002  this round says nothing to Postgres
        """Have Celery look after its pool if a process has died, in the thread that consumes messages."""
        if self._consumer.hub is None:
            return  # without an event loop the pool has a thread of its own that looks all the time
        if any(self._has_died(request) for _, request in self._entrusted.under_way()):
            self._consumer.call_soon(self._consumer.pool.maintain_pool)

    def end(self, reports: Reports) -> None:
        """Do nothing: Celery looks after its pool while it ends."""

    def living(self) -> list[Start]:
        """Return the running starts but those whose process is dead."""
        return [start for start, request in self._entrusted.under_way() if not self._has_died(request)]

    def _has_died(self, request: Any) -> bool:
        return has_processes(self._consumer.pool) and is_dead(request.worker_pid)


def is_dead(pid: int) -> bool:
    """Tell whether a child has ended; whoever waits for it will still find it."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # somebody has waited for it already
        return True
    except AttributeError:  # macOS before Python 3.13: there Celery alone looks
        return False
