"""The heartbeat of a worker's main process: the worker is alive, and these starts still run.

It names the starts whose pool process has accepted the job and is still alive, each by its token, never "all my jobs":
a job that may have ended without the worker's knowledge must not get a heartbeat. A start that has ended is named until
its finish is written. Invariant: a process sends heartbeats only for the jobs that run in itself and in its children,
and stops when they die, even if Celery has not noticed that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from celery_pgbeat.process.node import NodeId

logger = logging.getLogger(__name__)


class Heartbeat:
    """Announces the worker and keeps its running jobs from counting as dead.

    Args:
        running: the starts that Celery counts as running.
        living: the starts whose end is still to come or to be written.
        returns: whether the broker gets a task's message back if its process ends before the task.
    """

    def __init__(
        self,
        node: NodeId,
        every: timedelta,
        dead_after: timedelta,
        running: Callable[[], list[Start]],
        living: Callable[[], list[Start]],
        returns: Callable[[str | None], bool],
    ) -> None:
        self.every = every.total_seconds()
        self._node = node
        self._dead_after = dead_after
        self._running = running
        self._living = living
        self._returns = returns

    def run(self, queries: WorkerQueries) -> None:
        """Announce the node, and renew the starts that still run."""
        queries.announce_node(self._node)
        starts = self._living()
        if starts:
            queries.heartbeat(str(self._node), starts, self._dead_after)

    def shutdown(self, queries: WorkerQueries) -> None:
        """Give back or give up the jobs that still run in a worker that ends, and remove the node.

        The broker may have given a message to another worker before, which has dropped it. So a beat sends another one,
        if no copy has started by then.
        """
        living = set(self._living())
        for start in queries.starts_of_worker(str(self._node)):
            if start not in living and self._returns(start.task):
                logger.warning(
                    "Job %s goes back to the broker with its message", start.job, extra={"action": "requeue"}
                )
                queries.requeue(start, "its worker was shut down, its message went back to the broker", resend=True)
        for start in self._running():
            logger.warning("Job %s was still running when its worker ended", start.job, extra={"action": "lose"})
            queries.give_up_start(start, "the worker was shut down while the job was running")
        queries.remove_worker(self._node)
