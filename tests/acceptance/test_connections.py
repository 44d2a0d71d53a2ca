"""How many connections beats and workers have, and what they do if Postgres has none left."""

from __future__ import annotations

import time
from datetime import timedelta

from tests.acceptance.decisions import gaps
from tests.harness import checker
from tests.harness.processes import Cluster
from tests.harness.role import Role
from tests.harness.rows import insert_many, jobs, sql
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)


def held(url: str) -> int:
    (row,) = sql(
        url,
        "select count(*) as connections from pg_stat_activity "
        "where datname = current_database() and application_name = 'celery-pgbeat'",
    )
    return int(row["connections"])


def most_held(url: str, seconds: float) -> int:
    """Return how many of our connections there are at most, for some seconds."""
    until = time.monotonic() + seconds
    found = 0
    while time.monotonic() < until:
        found = max(found, held(url))
        time.sleep(0.02)
    return found


def test_a_beat_has_three_connections_and_a_worker_one_plus_one_for_each_pool_process(cluster: Cluster) -> None:
    beat = cluster.beat()
    assert most_held(cluster.database, 1) <= 2
    insert_many(cluster.database, 100)
    eventually(lambda: len(jobs(cluster.database)) >= 200, 20, "two rounds")
    assert most_held(cluster.database, 3) <= 3
    worker = cluster.worker(concurrency=3)
    eventually(lambda: len(cluster.probe.runs()) >= 200, 40, "two rounds run")
    assert most_held(cluster.database, 3) <= 3 + 1 + 3
    beat.stop()
    worker.stop()
    eventually(lambda: held(cluster.database) == 0, 20, "none is left")


def test_a_beat_that_may_have_two_connections_goes_on_sending(cluster: Cluster, role: Role) -> None:
    role.limit(2)
    insert_many(cluster.database, 3)
    cluster.worker()
    cluster.beat(environment={"PGBEAT_URL": role.url()}, wait=False)
    eventually(lambda: len(cluster.probe.runs()) >= 9, 40, "three rounds")


def test_beats_without_a_free_connection_wait_and_take_over_from_beats_that_end(cluster: Cluster, role: Role) -> None:
    role.limit(5)  # for four beats, which would hold up to twelve
    insert_many(cluster.database, 20)
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5}
    cluster.worker()
    beats = [cluster.beat(environment={"PGBEAT_URL": role.url()}, wait=False) for _ in range(4)]
    waiting = "too many connections for role"
    eventually(lambda: any(waiting in beat.log for beat in beats), 40, "one finds no connection")
    eventually(lambda: len(cluster.probe.runs()) >= 100, 40, "five rounds")
    for beat in sorted(beats, key=lambda beat: beat.log.count(waiting))[:2]:
        beat.kill()
    known = len(cluster.probe.runs())
    eventually(lambda: len(cluster.probe.runs()) >= known + 100, 40, "five rounds of the two that have waited most")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), 30, "nothing is under way")

    runs = cluster.probe.runs()
    sent = [job for job in jobs(cluster.database) if job["state"] != "skipped"]
    assert [] == gaps(cluster.database, SECOND)
    assert [] == checker.lost([(job["periodic_task"], job["scheduled_for"]) for job in sent], runs)
    assert [] == checker.doubled(runs)
