"""Each pool of Celery's worker, with both drivers: jobs run, and their ends are reported.

Pools with a package of their own are tested in more detail here. The others have the same tests in
`test_worker_guard.py` and `test_worker_stop_requests.py`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.sending import Sender, sender, worker
from tests.harness.servers import missing
from tests.harness.wait import eventually

POOLS = ("prefork", "threads", "solo", "gevent", "eventlet")
PACKAGES = ("gevent", "eventlet")  # pools that need a package of their own; `tox -e celery57-py313` installs both


@pytest.fixture
def pool(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name in PACKAGES and importlib.util.find_spec(name) is None:
        missing(name, f"{name} is not installed")
    return name


in_each_pool = pytest.mark.parametrize("pool", POOLS, indirect=True)
by_each_driver = pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
in_other_pools = pytest.mark.parametrize("pool", PACKAGES, indirect=True)


@pytest.fixture
def sending(cluster: Cluster) -> Iterator[Sender]:
    with sender(cluster) as made:
        yield made


@in_each_pool
@by_each_driver
def test_the_jobs_of_a_beat_run_and_their_ends_are_reported(cluster: Cluster, pool: str, driver: str) -> None:
    url = cluster.database.replace("postgresql://", f"postgresql+{driver}://")
    insert(cluster.database, "well")
    insert(cluster.database, "badly", max_runs=1, kwargs={"fail": True})
    insert(cluster.database, "again", max_runs=1, task="app.flaky", args=["again", 1])
    cluster.worker(pool=pool, environment={"PGBEAT_URL": url})
    cluster.beat(environment={"PGBEAT_URL": url})

    def states(name: str) -> list[str]:
        return [job["state"] for job in jobs(cluster.database, name)]

    eventually(lambda: states("well").count("succeeded") >= 3, 40, "three runs")
    eventually(lambda: states("badly") == ["failed"], 40, "a failure")
    eventually(lambda: states("again") == ["succeeded"], 40, "a retry")
    (failed,) = jobs(cluster.database, "badly")
    assert "ProbeFailed" in failed["error"]
    assert {"badly": 1, "again": 2} == {name: len(cluster.probe.runs(name)) for name in ("badly", "again")}
    (node,) = sql(cluster.database, "select tracking from pgbeat.node where role = 'worker'")
    assert node["tracking"]


@in_other_pools
def test_a_copy_of_a_message_starts_nothing(cluster: Cluster, sending: Sender, pool: str) -> None:
    started = worker(cluster, pool=pool)
    job = sending.job()
    for _ in range(3):
        sending.send(job, "app.probe", "x", 0.5)
    sending.wait_for(job, "succeeded")

    eventually(lambda: started.log.count("second message of job") == 2, 20, "both copies are dropped")
    assert 1 == len(cluster.probe.runs("x"))


@in_other_pools
def test_a_task_that_reads_cancelled_ends_by_itself_and_the_worker_stops_in_good_order(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    started = worker(cluster, pool=pool)
    job = sending.send_job("app.heeding", "x", 60)
    sending.wait_for(job, "running")

    sql(cluster.database, "update pgbeat.active_job set stop_request = 'cancel' where id = %(job)s", job=str(job))
    sending.wait_for(job, "succeeded")
    assert 0 == started.stop()
