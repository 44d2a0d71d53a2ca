"""P4: no overlap; P5: no schedule is ever blocked for good."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from tests.harness import broker, checker
from tests.harness.broker import both_brokers
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually


def test_p4_a_task_longer_than_its_interval_starts_at_the_first_tick_after_its_end_and_those_before_are_recorded(
    cluster: Cluster,
) -> None:
    cluster.worker(concurrency=2)
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "d10", "every 1s", args=["d10", 3.2])
    created = row(cluster.database, "d10")["created_at"]
    eventually(lambda: len(cluster.probe.runs("d10")) == 3, 40, "three starts")

    starts = [(run.started_at - created).total_seconds() for run in cluster.probe.runs("d10")]
    assert [1, 5, 9] == pytest.approx(starts, abs=1)
    assert [] == checker.overlapping(cluster.probe.runs()[:2])
    decided = [job for job in jobs(cluster.database, "d10") if job["scheduled_for"] < created + timedelta(seconds=5)]
    assert [None, "overlap", "overlap", "overlap"] == [job["reason"] for job in decided]
    assert {decided[0]["id"]} == {job["blocked_by"] for job in decided[1:]}
    assert [created + timedelta(seconds=second) for second in (1, 2, 3, 4)] == [job["scheduled_for"] for job in decided]


@both_brokers
def test_p4_without_any_worker_exactly_one_message_waits_at_the_broker(cluster: Cluster) -> None:
    insert(cluster.database, "d12", "every 1s")
    beat = cluster.beat()
    eventually(lambda: len(jobs(cluster.database, "d12")) >= 6, 20, "six ticks")

    assert 1 == broker.depth(cluster.broker)
    made, *skipped = jobs(cluster.database, "d12")
    assert {("skipped", "overlap", made["id"])} == {(job["state"], job["reason"], job["blocked_by"]) for job in skipped}
    cluster.worker()
    eventually(lambda: len(cluster.probe.runs("d12")) >= 2, 30, "the waiting one and a fresh one run")
    assert made["scheduled_for"] == cluster.probe.runs("d12")[0].scheduled_for
    assert [] == checker.overlapping(cluster.probe.runs())
    assert beat.is_running()


def test_p5_a_worker_killed_in_the_middle_frees_the_schedule_within_dead_after(cluster: Cluster) -> None:
    dead_after = 4
    cluster.settings = {"pgbeat_dead_after": dead_after, "pgbeat_heartbeat": 1}
    cluster.beat().wait_for_log("works on", 20)
    time.sleep(dead_after)  # a beat judges only after it has listened for as long
    worker = cluster.worker()
    insert(cluster.database, "d13", "every 1s", args=["d13", 60])
    eventually(lambda: cluster.probe.runs("d13"), 20, "it runs")
    worker.kill()
    (killed,) = sql(cluster.database, "select clock_timestamp() as at")

    eventually(lambda: broker.depth(cluster.broker) == 1, dead_after + 10, "the next tick goes out")
    lost = [job for job in jobs(cluster.database, "d13") if job["state"] == "lost"]
    fresh = [job for job in jobs(cluster.database, "d13") if job["state"] in ("pending", "sent")]
    assert 1 == len(lost)
    assert fresh[0]["created_at"] - killed["at"] < timedelta(seconds=dead_after + 2)


def test_p5_a_job_that_runs_on_past_dead_after_is_not_given_up(cluster: Cluster) -> None:
    """The control of the test above: silence is what counts, not time."""
    cluster.settings = {"pgbeat_dead_after": 3, "pgbeat_heartbeat": 0.5}
    cluster.beat()
    cluster.worker()
    insert(cluster.database, "long", "every 1s", args=["long", 10])
    eventually(lambda: cluster.probe.runs("long"), 20, "it runs")
    eventually(lambda: cluster.probe.runs("long")[0].finished_at, 20, "it ends")

    first = min(jobs(cluster.database, "long"), key=lambda job: job["scheduled_for"])
    eventually(lambda: jobs(cluster.database, "long")[0]["state"] == "succeeded", 20, "succeeded")
    assert [] == [job for job in jobs(cluster.database, "long") if job["state"] == "lost"]
    assert first["id"] == jobs(cluster.database, "long")[0]["id"]


def test_a_retrying_job_blocks_its_next_ticks_and_its_attempts_are_one_job(cluster: Cluster) -> None:
    cluster.worker()
    cluster.beat()
    insert(cluster.database, "s14", "every 1h", task="app.flaky", args=["s14", 2])
    eventually(lambda: row(cluster.database, "s14")["next_run_at"], 10, "planned")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now()")
    eventually(lambda: {job["state"] for job in jobs(cluster.database, "s14")} == {"succeeded"}, 30, "it succeeds")

    (job,) = jobs(cluster.database, "s14")
    assert [0, 1, 2] == [run.attempt for run in cluster.probe.runs("s14")]
    assert {str(job["id"])} == {run.job for run in cluster.probe.runs("s14")}
    assert 2 == job["attempt"]


def test_a_task_that_raises_is_failed_and_its_next_tick_is_sent_as_planned(cluster: Cluster) -> None:
    cluster.worker()
    cluster.beat()
    insert(cluster.database, "bad", "every 1s", args=["bad", 0, True])
    eventually(
        lambda: len([job for job in jobs(cluster.database, "bad") if job["state"] == "failed"]) >= 3, 30, "fails"
    )

    assert all("ProbeFailed" in job["error"] for job in jobs(cluster.database, "bad") if job["state"] == "failed")
