"""The minimum gap between two starts, which the workers keep whatever the queue does."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.harness.broker import both_brokers, depth
from tests.harness.jobs import finished
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs
from tests.harness.sending import Sender, sender, worker
from tests.harness.wait import eventually

GAP = timedelta(seconds=55)


@pytest.fixture
def sending(cluster: Cluster, redis_url: str) -> Iterator[Sender]:
    cluster.settings["result_backend"] = redis_url
    with sender(cluster) as made:
        yield made


def spaced(sending: Sender, label: str, task: str = "app.probe", **columns: object) -> uuid.UUID:
    """Send a job of a row with a gap, as `overlap = 'allow'` has them."""
    columns = {"periodic_task": "a", "min_gap": GAP, "exclusive": False, **columns}
    return sending.send_job(task, label, *((1,) if task == "app.flaky" else ()), columns=columns)


@both_brokers
def test_a_job_that_comes_too_early_is_dropped_before_its_body_runs(cluster: Cluster, sending: Sender) -> None:
    node = worker(cluster)
    sending.wait_for(spaced(sending, "a1"), "succeeded")
    early = spaced(sending, "a2")
    sending.wait_for(early, "skipped")
    other = spaced(sending, "b1", periodic_task="b")
    sending.wait_for(other, "succeeded")

    assert ["a1", "b1"] == [run.label for run in cluster.probe.runs()]
    found = finished(sending.database, early)
    assert found is not None
    assert ("min_gap", None) == (found["reason"], found["started_at"])
    assert 1 == node.log.count(f"Job {early} of 'a' is dropped: less than its min_gap of 0:00:55 since the last start")
    assert "PENDING" == sending.result(early)  # Ignore leaves the result backend as it was
    assert "Traceback" not in node.log
    assert 0 == depth(cluster.broker)


def test_one_of_two_jobs_that_start_at_the_same_moment_runs(cluster: Cluster, sending: Sender) -> None:
    worker(cluster, concurrency=1)
    worker(cluster, concurrency=1)
    for number in range(5):
        pair = [spaced(sending, f"{number}", periodic_task=f"row-{number}") for _ in range(2)]
        eventually(lambda pair=pair: all(finished(sending.database, job) for job in pair), 20, "both ends")
    assert [f"{number}" for number in range(5)] == sorted(run.label for run in cluster.probe.runs())


def test_a_retry_and_a_manual_run_are_never_too_early(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    sending.wait_for(spaced(sending, "x", task="app.flaky"), "succeeded")
    sending.wait_for(spaced(sending, "manual", origin="manual"), "succeeded")
    assert ["x", "x", "manual"] == [run.label for run in cluster.probe.runs()]


def test_a_row_whose_interval_is_longer_than_its_gap_runs_at_each_occurrence(cluster: Cluster) -> None:
    """The control: a job that comes in time is never dropped."""
    worker(cluster)
    cluster.beat()
    insert(cluster.database, "a", "every 3s", min_gap=timedelta(seconds=0.5), overlap="allow")
    eventually(lambda: len(cluster.probe.runs("a")) >= 5, 60, "five runs")
    assert [] == [job for job in jobs(cluster.database, "a") if job["state"] == "skipped"]
