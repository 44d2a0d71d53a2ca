"""P1, P3 with either driver, also through PgBouncer, where no notification ever arrives."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.engine import make_url

from tests.acceptance.decisions import decided, gaps
from tests.harness import checker
from tests.harness.pgbouncer import PgBouncer
from tests.harness.processes import Cluster
from tests.harness.rows import insert, insert_many, jobs, sql
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)


def by(driver: str, url: str) -> dict[str, str]:
    """Return the environment of a process that reaches the database by this driver."""
    chosen = make_url(url).set(drivername=f"postgresql+{driver}")
    return {"PGBEAT_URL": chosen.render_as_string(hide_password=False)}


def share_the_work(cluster: Cluster, environment: dict[str, str]) -> None:
    """Have three beats and a worker share some rows; one that sends is killed; nothing is lost or doubled."""
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5}
    insert_many(cluster.database, 20)
    beats = [cluster.beat(environment=environment, wait=False) for _ in range(3)]
    worker = cluster.worker(environment=environment)
    eventually(lambda: len(cluster.probe.runs()) >= 60, 40, "three rounds")
    (last,) = sql(cluster.database, "select beat from pgbeat.job order by created_at desc limit 1")
    (sending,) = [beat for beat in beats if str(beat.pid) in last["beat"].split(":")]
    sending.kill()
    known = len(cluster.probe.runs())
    eventually(lambda: len(cluster.probe.runs()) >= known + 80, 40, "four rounds of the other two")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), 30, "nothing is under way")

    runs = cluster.probe.runs()
    sent = [job for job in jobs(cluster.database) if job["state"] != "skipped"]
    assert worker.is_running()
    assert all(beat.is_running() for beat in beats if beat is not sending)
    assert {1} == set(decided(cluster.database, SECOND).values())
    assert [] == gaps(cluster.database, SECOND)
    assert [] == checker.lost([(job["periodic_task"], job["scheduled_for"]) for job in sent], runs)
    assert [] == checker.doubled(runs)
    assert [] == checker.early(runs)
    assert len({job["beat"] for job in sent}) >= 2


@pytest.mark.parametrize("pgbouncer", ["transaction", "session"], indirect=True)
@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_p1_p3_many_beats_and_a_worker_share_the_work_through_a_pooler(
    cluster: Cluster, pgbouncer: PgBouncer, driver: str
) -> None:
    share_the_work(cluster, by(driver, pgbouncer.url))

    (row,) = sql(
        cluster.database,
        "select count(*) as connections from pg_stat_activity "
        "where datname = current_database() and application_name = 'celery-pgbeat'",
    )
    assert 1 <= row["connections"] <= pgbouncer.pool_size
    assert all("DuplicatePreparedStatement" not in node.log for node in cluster.nodes)


def test_p1_p3_many_beats_and_a_worker_share_the_work_with_psycopg_3(cluster: Cluster) -> None:
    share_the_work(cluster, by("psycopg", cluster.database))


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_p9_a_change_behind_a_pooler_is_found_by_polling(cluster: Cluster, pgbouncer: PgBouncer, driver: str) -> None:
    beat = cluster.beat(settings={"pgbeat_poll": 0.5}, environment=by(driver, pgbouncer.url))
    beat.wait_for_log("works on", 20)

    insert(cluster.database, "new", schedule=None, next_run_at="2026-01-01T00:00:00Z")

    eventually(lambda: jobs(cluster.database, "new"), 10, "it is found")
    assert beat.is_running()
