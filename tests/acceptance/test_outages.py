"""P10: outages are waited out: no process exits, nothing starts twice, every tick is sent or recorded."""

from __future__ import annotations

import os
import time
from collections import Counter
from datetime import timedelta
from typing import Any

from celery_pgbeat.embedded import Postgres, Valkey
from tests.harness import checker
from tests.harness.databases import migrate_database
from tests.harness.processes import Cluster, Node
from tests.harness.rows import insert_many, jobs, sql
from tests.harness.wait import eventually

AWAY = float(os.environ.get("PGBEAT_TEST_OUTAGE", "5"))  # seconds that a server is away
SECOND = timedelta(seconds=1)


def unaccounted(url: str, every: timedelta = SECOND) -> list[Any]:
    """List the occurrences that are neither a job nor among the counted ones of a record."""
    by_task: dict[str, list[dict[str, Any]]] = {}
    for job in jobs(url):
        by_task.setdefault(job["periodic_task"], []).append(job)
    found = []
    for name, decided in by_task.items():
        covered = Counter[Any]()
        for job in decided:
            last = job["last_scheduled_for"] or job["scheduled_for"]
            covered.update(instant for _, instant in checker.grid(name, job["scheduled_for"], every, last))
        due = checker.grid(name, min(covered), every, max(covered))
        found += [occurrence for occurrence in due if not covered[occurrence[1]]]
    return found


def started_beats(cluster: Cluster, count: int = 2) -> list[Node]:
    nodes: list[Node] = [cluster.beat(wait=False) for _ in range(count)]
    nodes.append(cluster.worker())
    return nodes


def quiet(cluster: Cluster) -> None:
    """Pause everything and wait until nothing is under way."""
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), 60, "nothing is under way")


def test_p10_a_database_that_restarts_is_waited_out(cluster: Cluster, own_postgres: Postgres) -> None:
    cluster.database = own_postgres.url
    migrate_database(own_postgres.url)
    insert_many(cluster.database, 20)
    nodes = started_beats(cluster)
    eventually(lambda: len(cluster.probe.runs()) >= 40, 40, "two rounds")

    own_postgres.shut_down()
    time.sleep(AWAY)
    own_postgres.start()
    (back,) = sql(cluster.database, "select clock_timestamp() as at")
    eventually(
        lambda: sql(
            cluster.database,
            "select count(distinct periodic_task) = 20 as well from pgbeat.job "
            "where sent_at > %(at)s and scheduled_for > %(at)s",
            at=back["at"],
        )[0]["well"],
        20,
        "all rows run again",
    )
    quiet(cluster)

    assert all(node.is_running() for node in nodes)
    assert [] == checker.doubled(cluster.probe.runs())
    assert [] == unaccounted(cluster.database)
    first = min(run.started_at for run in cluster.probe.runs() if run.started_at > back["at"])
    assert first - back["at"] < timedelta(seconds=5)


def test_p10_a_broker_that_is_away_is_waited_out(cluster: Cluster, own_redis: Valkey) -> None:
    cluster.broker = own_redis.url
    # What waits in the queue is gone with this Redis: it is sent again.
    # The worker, which may end with it, must not count as dead meanwhile: without a tracker nothing is sent again.
    cluster.settings = {"pgbeat_pickup_deadline": 5, "pgbeat_dead_after": 25, "pgbeat_heartbeat": 2}
    insert_many(cluster.database, 20)
    nodes = started_beats(cluster)
    worker = nodes[-1]
    eventually(lambda: len(cluster.probe.runs()) >= 40, 40, "two rounds")

    own_redis.shut_down()
    time.sleep(AWAY)
    own_redis.start()
    (back,) = sql(cluster.database, "select clock_timestamp() as at")

    def run_again() -> bool:
        worker.revive()  # Celery's own may end when its broker goes while it holds a message
        return 20 == len({run.periodic_task for run in cluster.probe.runs() if run.scheduled_for > back["at"]})

    eventually(run_again, 60, "all rows run again")
    quiet(cluster)

    assert all(node.is_running() for node in nodes)
    assert [] == checker.doubled(cluster.probe.runs())
    assert [] == unaccounted(cluster.database)
    made = {job["id"] for job in jobs(cluster.database) if job["state"] != "skipped"}
    assert {str(job) for job in made} <= {run.job for run in cluster.probe.runs()}


def test_p10_a_frozen_broker_does_not_block_a_beat_for_ever(cluster: Cluster, own_redis: Valkey) -> None:
    cluster.broker = own_redis.url
    insert_many(cluster.database, 5)
    beat = cluster.beat()
    eventually(lambda: len(jobs(cluster.database)) >= 5, 20, "a round")

    own_redis.freeze()
    beat.wait_for_log("The broker is not usable", 20)
    own_redis.resume()
    (back,) = sql(cluster.database, "select clock_timestamp() as at")

    eventually(
        lambda: [job for job in jobs(cluster.database) if job["sent_at"] and job["sent_at"] > back["at"]],
        20,
        "it sends again",
    )
    assert beat.is_running()


def test_p10_a_beat_that_starts_before_its_database_waits_for_it(cluster: Cluster, own_postgres: Postgres) -> None:
    migrate_database(own_postgres.url)
    insert_many(own_postgres.url, 3)
    url = own_postgres.url
    own_postgres.shut_down()
    beat = cluster.beat(environment={"PGBEAT_URL": url})
    beat.wait_for_log("is not usable", 20)
    time.sleep(1)
    assert 1 == beat.log.count("is not usable")

    own_postgres.start()
    eventually(lambda: len(jobs(url)) >= 3, 20, "it works")
