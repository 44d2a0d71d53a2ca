"""Queues under faults: two ordered groups and one with three places, whatever dies, goes away or is restarted.

Never more run at a time than allowed, an ordered group runs in the order of its schedule by the probe's own record,
nothing is lost and no group is stuck.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from celery_pgbeat.embedded import Postgres, Server
from tests.faults.deaths import Deaths
from tests.faults.lengths import AWAY, LEASE, MARKS, SECONDS, part, within
from tests.faults.load import SECOND, Load, beats, now, paced, wait_until, working
from tests.harness.account import Limits, first_each, prove
from tests.harness.checker import most_at_once, out_of_order
from tests.harness.databases import migrate_database
from tests.harness.probe import Run
from tests.harness.processes import Beat, Cluster, Worker
from tests.harness.rows import jobs, sql
from tests.harness.wait import eventually

pytestmark = MARKS

DEAD_AFTER = 3  # seconds
ROWS = part(50, least=10)  # of each group
RUN = 0.2  # seconds
PLACES = {"line-a": 1, "line-b": 1, "three": 3}
DEFINE = """
select pgbeat.define_group('line-a', ordered => true);
select pgbeat.define_group('line-b', ordered => true);
select pgbeat.define_group('three', max_active => 3);
"""


class Queues:
    """The groups and their rows, on four beats and three workers."""

    def __init__(self, cluster: Cluster) -> None:
        cluster.settings = {
            "pgbeat_lease": LEASE,
            "pgbeat_poll": 0.5,
            "pgbeat_heartbeat": 1,
            "pgbeat_dead_after": DEAD_AFTER,
            "pgbeat_pickup_deadline": 8,  # a killed worker may have taken messages that it had not started
        }
        self.cluster = cluster
        sql(cluster.database, DEFINE)
        self.beats = beats(cluster, 4)
        self.workers = [cluster.worker(concurrency=2, settings={"worker_prefetch_multiplier": 1}) for _ in range(3)]
        self.deaths = Deaths(cluster)
        common: dict[str, Any] = {
            "every": 10 * SECOND,
            "sleep": RUN,
            "seconds": SECONDS,
            "overlap": "'buffer_all'",
            "catchup": "'all'",
            "on_lost": "'rerun'",
        }
        self.loads = {group: Load(cluster, ROWS, name=group, group_name=f"'{group}'", **common) for group in PLACES}

    def prove(self, note: Callable[[str], None]) -> None:
        """Wait until all is done, and judge what ran."""
        last = self.loads["three"]
        last.runs_for(SECONDS)
        due = {group: len(load.due(now(self.cluster.database))) for group, load in self.loads.items()}
        # An ordered group runs all that is due one by one, and each death keeps it waiting for as long as a dead worker
        # is waited for.
        patience = within(30 + 2 * RUN * max(due.values()) + (DEAD_AFTER + 1) * len(self.deaths.died))
        eventually(self._are_done, patience, "the end of all jobs", every=0.5)
        for group, load in self.loads.items():
            account = load.account(None, now(self.cluster.database), started=True)
            runs = list(account.started or ())
            note(f"{group}: {due[group]} due, {len(runs)} runs, {most_at_once(self._ended(runs))} at once")
            assert most_at_once(self._ended(runs)) <= PLACES[group], group
            if PLACES[group] == 1:
                assert [] == out_of_order(runs)
            prove(replace(account, started=first_each(runs)), Limits())  # what a killed worker ran runs again
            assert all(job["state"] == "succeeded" for name in load.names for job in jobs(self.cluster.database, name))

    def _ended(self, runs: Sequence[Run]) -> list[Run]:
        return [self.deaths.ended(run) for run in runs]

    def _are_done(self) -> bool:
        self.deaths.look()
        left = "select 1 from pgbeat.active_job union all select 1 from pgbeat.periodic_task where next_run_at < now()"
        return not sql(self.cluster.database, left)


def test_queues_hold_while_beats_and_workers_are_killed(cluster: Cluster, note: Callable[[str], None]) -> None:
    queues = Queues(cluster)
    queues.loads["three"].runs_for(0)
    for number in paced(SECONDS, every=0.2):
        queues.deaths.look()
        if number % 10 == 0:
            queues.deaths.kill_one(queues.workers)
        elif number % 10 == 5:
            revive(random.choice(queues.beats))
    for beat in queues.beats:
        working(beat)
    note(f"{len(queues.deaths.died)} runs killed")
    queues.prove(note)


def revive(beat: Beat | Worker) -> None:
    """Kill a node and start it again."""
    beat.kill()
    beat.start(wait=False)


def test_queues_hold_while_postgres_is_restarted(
    cluster: Cluster, own_postgres: Postgres, note: Callable[[str], None]
) -> None:
    cluster.database = own_postgres.url
    migrate_database(own_postgres.url)
    queues = Queues(cluster)
    for number in range(part(10, least=2)):
        queues.loads["three"].runs_for(2 * number + 1)
        own_postgres.restart("immediate")
    queues.prove(note)


@pytest.mark.parametrize("own_broker", ["redis"], indirect=True)
def test_queues_hold_while_the_broker_is_away(
    cluster: Cluster, own_broker: Server, note: Callable[[str], None]
) -> None:
    cluster.broker = own_broker.url
    queues = Queues(cluster)
    queues.loads["three"].runs_for(2)
    own_broker.kill()
    began = now(cluster.database)
    wait_until(cluster.database, began + AWAY * SECOND)
    own_broker.start()
    for worker in queues.workers:  # Celery's own may end when its broker is killed
        if not worker.is_running():
            worker.kill()
            worker.start(wait=False)
    queues.prove(note)
