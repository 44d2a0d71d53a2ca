"""A row whose messages a broker copies for each worker."""

from __future__ import annotations

from collections import Counter

from tests.harness.broker import both_brokers
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually

APP = "tests.acceptance.broadcast_app"
WORKERS = 3


@both_brokers
def test_each_worker_runs_a_row_of_a_broadcast_queue_that_is_not_tracked_and_one_runs_a_tracked_one(
    cluster: Cluster, broker_url: str
) -> None:
    queue = f"{'amqp' if broker_url.startswith('amqp') else 'redis'}-all"
    for _ in range(WORKERS):
        cluster.worker(app=APP, queues=f"celery,{queue}", pool="solo")
    beat = cluster.beat(app=APP)
    beat.wait_for_log("works on", 20)
    insert(cluster.database, "cache", "every 1s", queue=queue, tracking="send", max_runs=5)
    insert(cluster.database, "tracked", "every 1s", queue=queue, max_runs=2)
    eventually(lambda: len(cluster.probe.runs("cache")) == 5 * WORKERS, 30, "each run of each worker")
    eventually(lambda: {"succeeded"} == states(cluster, "tracked"), 20, "the tracked ones")

    of_each = Counter((run.job, run.worker) for run in cluster.probe.runs("cache"))
    assert [1] * 5 * WORKERS == list(of_each.values())
    assert {"untracked"} == states(cluster, "cache")
    assert 2 == len(cluster.probe.runs("tracked"))
    assert 1 == beat.log.count("'tracked' go to a fanout exchange")
    assert "'cache' go to a fanout exchange" not in beat.log
    assert [] == sql(cluster.database, "select from pgbeat.periodic_task where problem is not null")


def states(cluster: Cluster, name: str) -> set[str]:
    return {job["state"] for job in jobs(cluster.database, name)}
