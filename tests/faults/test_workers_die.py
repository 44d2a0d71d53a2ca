"""Workers and their children are killed all the time: what they ran is settled soon, nothing overlaps, all is rerun."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.node import NodeId
from tests.faults.lengths import LEASE, MARKS, SECONDS, within
from tests.faults.load import SECOND, Load, beats, now, paced
from tests.harness.account import Limits, first_each, prove
from tests.harness.checker import Occurrence, overlapping
from tests.harness.probe import Run
from tests.harness.processes import Cluster, Worker
from tests.harness.rows import jobs, sql
from tests.harness.usage import is_alive
from tests.harness.wait import eventually

pytestmark = MARKS

DEAD_AFTER = 3  # seconds
RUN = 1.5  # seconds


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

    def ended(self, run: Run) -> Run:
        """Return the run with the end that it had, if it was killed."""
        return replace(run, finished_at=run.finished_at or self.died.get((run.job, run.pid)))


def test_jobs_of_killed_workers_and_pool_processes_are_settled_within_dead_after(
    cluster: Cluster, note: Callable[[str], None]
) -> None:
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_poll": 0.5, "pgbeat_dead_after": DEAD_AFTER}
    cluster.settings["pgbeat_pickup_deadline"] = 8  # a killed worker may have taken messages that it had not started
    beats(cluster, 2)
    workers = [cluster.worker(concurrency=4, settings={"worker_prefetch_multiplier": 1}) for _ in range(2)]
    deaths = Deaths(cluster)
    common: dict[str, Any] = {"every": 2 * SECOND, "sleep": RUN, "overlap": "'skip'"}
    once = Load(cluster, 3, name="once", **common)
    again = Load(cluster, 3, name="again", on_lost="'rerun'", **common)
    once.runs_for(DEAD_AFTER)  # beats judge only after they have listened for as long
    for number in paced(SECONDS, every=0.2):
        deaths.look()
        if number % 5 == 0:
            deaths.kill_one(workers)
    eventually(deaths.are_settled, within(2 * DEAD_AFTER), "all of the dead are settled")
    marked, rerun = (load.settle(None, started=True) for load in (once, again))
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), within(20), "the end of all runs")

    slowest = max(deaths.settled.values())
    unseen = deaths.lost_unseen(once.names)
    marked = replace(marked, recorded=[*marked.recorded, *unseen])
    rerun = replace(rerun, started=first_each(rerun.started or ()))
    note(f"{len(deaths.settled)} runs killed, settled within {slowest.total_seconds():.1f} s")
    note(f"{len(unseen)} more killed before their body began")
    note(f"at most once: {marked}; run again: {rerun}")
    prove(marked, Limits())
    prove(rerun, Limits())
    assert slowest < timedelta(seconds=within(DEAD_AFTER + 2))
    runs = cluster.probe.runs()
    assert [] == overlapping([deaths.ended(run) for run in runs])
    completed = {run.job for run in runs if run.finished_at is not None}
    made = [job for name in again.names for job in jobs(cluster.database, name) if job["state"] != "skipped"]
    # A message is sent three times more, each time to a worker that is killed before it starts it: that is the limit.
    assert [] == [
        job for job in made if job["id"] not in completed and not (job["state"] == "lost" and job["sends"] > 3)
    ]
