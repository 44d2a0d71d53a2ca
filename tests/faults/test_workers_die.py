"""Workers and their children are killed all the time: what they ran is settled soon, nothing overlaps, all is rerun."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.faults.deaths import MOST_SENDS, Deaths
from tests.faults.lengths import LEASE, MARKS, SECONDS, within
from tests.faults.load import SECOND, Load, beats, paced
from tests.harness.account import Limits, first_each, prove
from tests.harness.checker import overlapping
from tests.harness.processes import Cluster
from tests.harness.rows import jobs, sql
from tests.harness.wait import eventually

pytestmark = MARKS

DEAD_AFTER = 3  # seconds
RUN = 1.5  # seconds


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
    unseen, unstarted = deaths.lost_unseen(once.names), deaths.never_started([*once.names, *again.names])
    marked = replace(marked, recorded=[*marked.recorded, *unseen, *(one for one in unstarted if one[0] in once.names)])
    rerun = replace(
        rerun,
        started=first_each(rerun.started or ()),
        recorded=[*rerun.recorded, *(one for one in unstarted if one[0] in again.names)],
    )
    note(f"{len(deaths.settled)} runs killed, settled within {slowest.total_seconds():.1f} s")
    note(f"{len(unseen)} more killed before their body began, {len(unstarted)} after four sends")
    note(f"at most once: {marked}; run again: {rerun}")
    prove(marked, Limits())
    prove(rerun, Limits())
    assert slowest < timedelta(seconds=within(DEAD_AFTER + 2))
    runs = cluster.probe.runs()
    assert [] == overlapping([deaths.ended(run) for run in runs])
    completed = {run.job for run in runs if run.finished_at is not None}
    made = [job for name in again.names for job in jobs(cluster.database, name) if job["state"] != "skipped"]
    assert [] == [
        job for job in made if job["id"] not in completed and not (job["state"] == "lost" and job["sends"] > MOST_SENDS)
    ]
