"""Workers and pool processes that are killed: which runs died with them, and when their jobs were settled."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from celery_pgbeat.process.node import NodeId
from tests.faults.load import SECOND, now
from tests.harness.checker import Occurrence
from tests.harness.probe import Run
from tests.harness.processes import Cluster, Worker
from tests.harness.rows import jobs, sql
from tests.harness.usage import is_alive

MOST_SENDS = 3  # more than the first one


@dataclass(slots=True)
class Deaths:
    """Which runs were killed and when, and when their jobs left the state that they were in."""

    cluster: Cluster
    died: dict[tuple[str, int], datetime] = field(default_factory=dict)  # (job, process)
    settled: dict[tuple[str, int], timedelta] = field(default_factory=dict)  # how long after its death
    workers: dict[int, datetime] = field(default_factory=dict)  # main processes that were killed, and when

    def kill_one(self, workers: Sequence[Worker]) -> None:
        """Kill a worker with all its children, or one child that runs a job.

        The job of a pool process may run again a moment later, so each death is noted here, as of just before.
        """
        running = [run for run in self.cluster.probe.runs() if run.finished_at is None and is_alive(run.pid)]
        at = now(self.cluster.database)
        if running and random.random() < 0.5:
            victims = [random.choice(running)]
            os.kill(victims[0].pid, signal.SIGKILL)
        else:
            worker = random.choice(workers)
            self.workers[worker.pid] = at
            worker.kill()
            # By name: a process that has been killed may be seen for a while.
            victims = [run for run in running if run.worker is not None and run.worker.startswith(f"{worker.name}@")]
            worker.start(wait=False)
        self.died.update({(run.job, run.pid): at for run in victims})

    def look(self) -> None:
        """Note the processes that have died since the last look, and what became of their jobs."""
        runs = self.cluster.probe.runs()
        at = now(self.cluster.database)
        for run in runs:
            if run.finished_at is None and not is_alive(run.pid):
                self.died.setdefault((run.job, run.pid), at)
        waiting = self.died.keys() - self.settled.keys()
        statement = (
            "select id, attempt_at from pgbeat.active_job where state = 'running' and id = any (%(ids)s::uuid[])"
        )
        found = sql(self.cluster.database, statement, ids=[job for job, _ in waiting])
        started = {row["id"]: row["attempt_at"] for row in found}
        for job, pid in waiting:
            # Running, but since its death: it was started again, and may have died again before its body began.
            if job not in started or started[job] > self.died[job, pid]:
                self.settled[job, pid] = at - self.died[job, pid]

    def are_settled(self) -> bool:
        """Look, and return whether no dead process is left whose jobs are not settled."""
        self.look()
        return self.died.keys() == self.settled.keys()

    def lost_unseen(self, names: Sequence[str]) -> list[Occurrence]:
        """List what was given up because it died between its start and the first line of its body.

        That is "at most once", and there is no run to show it; so its row must show it, and its worker
        must have been killed then.
        """
        ran = {run.job for run in self.cluster.probe.runs()}
        found = []
        for job in jobs(self.cluster.database):
            if job["periodic_task"] in names and job["state"] == "lost" and job["started_at"] and job["id"] not in ran:
                worker = NodeId.parse(job["worker"])
                killed_at = self.workers.get(worker.pid) if worker is not None else None
                if killed_at is not None and abs(killed_at - job["started_at"]) < SECOND / 2:
                    found.append((job["periodic_task"], job["scheduled_for"]))
        return found

    def never_started(self, names: Sequence[str]) -> list[Occurrence]:
        """List what was given up because it was sent as often as it may be, each time to a worker that then died.

        A killed worker may have taken messages that it had not started. Where it takes long to start another worker,
        that one may be killed, too, before it has started anything.
        """
        return [
            (job["periodic_task"], job["scheduled_for"])
            for job in jobs(self.cluster.database)
            if job["periodic_task"] in names
            and job["state"] == "lost"
            and job["started_at"] is None
            and job["sends"] > MOST_SENDS
        ]

    def ended(self, run: Run) -> Run:
        """Return the run with the end that it had, if it was killed."""
        return replace(run, finished_at=run.finished_at or self.died.get((run.job, run.pid)))
