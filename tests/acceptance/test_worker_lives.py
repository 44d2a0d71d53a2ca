"""A worker announces itself, sends heartbeats for the jobs that it runs, and counts as dead without them."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.harness.broker import both_brokers
from tests.harness.jobs import active, finished
from tests.harness.processes import Cluster, Worker
from tests.harness.rows import insert, jobs
from tests.harness.sending import Sender, sender, worker
from tests.harness.wait import eventually

FAST = {"pgbeat_dead_after": 3, "pgbeat_heartbeat": 1}


@pytest.fixture
def sending(cluster: Cluster) -> Iterator[Sender]:
    with sender(cluster) as made:
        yield made


def silence(sending: Sender, job: uuid.UUID) -> timedelta:
    row = active(sending.database, job)
    assert row is not None
    found: timedelta = row["patience"]
    return found


@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_a_running_job_gets_heartbeats_and_a_waiting_one_does_not(sending: Sender, pool: str) -> None:
    node = worker(sending.cluster, pool=pool, concurrency=1, settings=FAST)
    running, waiting = sending.send_job("app.probe", "x", 30), sending.send_job("app.probe", "y", 30)
    sending.wait_for(running, "running")
    with pytest.raises(AssertionError, match="not within"):
        eventually(lambda: silence(sending, running) < timedelta(seconds=1), 6, "a silence", every=0.2)
    assert "sent" == (active(sending.database, waiting) or {})["state"]
    node.kill()
    eventually(lambda: silence(sending, running) < timedelta(0), 20, "the end of the heartbeat")


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_a_child_that_is_forked_after_the_first_heartbeat_uses_its_own_connection(sending: Sender, driver: str) -> None:
    url = sending.cluster.database.replace("postgresql://", f"postgresql+{driver}://")
    arguments = ["--max-tasks-per-child", "1"]
    node = worker(sending.cluster, concurrency=1, settings=FAST, arguments=arguments, environment={"PGBEAT_URL": url})
    for number in range(3):
        sending.wait_for(sending.send_job("app.probe", str(number), 1), "succeeded")
    assert 3 == len({run.pid for run in sending.cluster.probe.runs()})
    assert "not usable" not in node.log


def nodes(sending: Sender) -> list[Any]:
    return list(sending.database.execute("select * from pgbeat.node where role = 'worker'"))


def announced(sending: Sender, node: Worker) -> None:
    (row,) = eventually(lambda: nodes(sending), 20, "the announcement")
    assert (node.pid, True) == (row.pid, row.tracking)


def test_a_worker_announces_itself_and_removes_itself_when_it_stops(sending: Sender) -> None:
    node = worker(sending.cluster)
    announced(sending, node)
    job = sending.send_job("app.probe", "x", 2)
    sending.wait_for(job, "running")
    assert node.stop() == 0
    sending.wait_for(job, "succeeded", 1)
    assert [] == nodes(sending)


def test_a_beat_inside_the_worker_is_another_node(sending: Sender) -> None:
    node = worker(sending.cluster, arguments=["-B"])
    sending.wait_for(sending.send_job("app.probe", "x"), "succeeded")
    announced(sending, node)


def test_a_cold_shutdown_gives_up_the_running_jobs_and_removes_the_worker(sending: Sender) -> None:
    node = worker(sending.cluster)
    announced(sending, node)
    job = sending.send_job("app.probe", "x", 60)
    sending.wait_for(job, "running")
    node.signal(signal.SIGQUIT)
    node.wait(30)
    sending.wait_for(job, "lost")
    assert [] == nodes(sending)


def test_the_jobs_of_a_killed_worker_are_lost_after_their_deadline(sending: Sender) -> None:
    node = worker(sending.cluster, settings=FAST)
    job = sending.send_job("app.probe", "x", 60)
    sending.wait_for(job, "running")
    node.kill()
    eventually(lambda: silence(sending, job) < timedelta(0), 20, "the silence")
    sending.database.run("judge", batch=10, resending=True)
    assert "lost" == (finished(sending.database, job) or {})["state"]


SHORT_SIGHT = {"visibility_timeout": 1, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}  # seconds


@both_brokers
@pytest.mark.parametrize(("on_lost", "starts", "state"), [("give_up", 1, "lost"), ("rerun", 2, "succeeded")])
def test_p3_what_a_killed_worker_had_not_acknowledged_comes_back_and_starts_only_as_on_lost_says(
    cluster: Cluster, on_lost: str, starts: int, state: str
) -> None:
    cluster.settings = {**FAST, "task_acks_late": True, "pgbeat_lease": 2, "pgbeat_poll": 0.5}
    if cluster.broker.startswith("redis"):
        cluster.settings["broker_transport_options"] = SHORT_SIGHT
    cluster.beat()
    doomed = cluster.worker(concurrency=1)
    insert(cluster.database, "once", None, args=["once", 4], on_lost=on_lost, next_run_at="2026-01-01T00:00:00Z")
    eventually(lambda: cluster.probe.runs("once"), 20, "it runs")
    doomed.kill()

    heir = cluster.worker(concurrency=1)
    heir.wait_for_log("second message of job", 20)
    eventually(lambda: state == jobs(cluster.database, "once")[0]["state"], 20, state)

    assert starts == len(cluster.probe.runs("once"))
    assert 1 == len(jobs(cluster.database, "once"))
