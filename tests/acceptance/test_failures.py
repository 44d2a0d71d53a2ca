"""`pause_after_failures` with a real beat and worker: a row that fails again and again is paused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.harness.broker import both_brokers
from tests.harness.cost import slowness
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.sending import APP, worker
from tests.harness.wait import eventually


def ends(cluster: Cluster, name: str) -> list[str]:
    """Return how the jobs that have started ended, or what they do. (A busy machine may skip an occurrence.)"""
    return [job["state"] for job in jobs(cluster.database, name) if job["started_at"]]


def paused(cluster: Cluster, name: str) -> dict[str, Any]:
    eventually(lambda: not row(cluster.database, name)["enabled"], 40, f"the pause of {name}")
    return row(cluster.database, name)


@both_brokers
def test_a_row_that_fails_three_times_is_paused_and_has_no_fourth_run(cluster: Cluster) -> None:
    worker(cluster)
    beat = cluster.beat()
    insert(cluster.database, "x", "every 1s", args=["x", 0, True], pause_after_failures=3)
    insert(cluster.database, "control", "every 1s", args=["control", 0, True])

    found = paused(cluster, "x")

    third = jobs(cluster.database, "x")[-1]
    reason = f"3 failed jobs in a row, the last at {third['finished_at']:%Y-%m-%d %H:%M:%S}Z: {third['id']}"
    assert (reason, "pgbeat", None) == (found["pause_reason"], found["paused_by"], found["paused_until"])
    assert timedelta(0) <= found["updated_at"] - third["finished_at"] < timedelta(seconds=2 * slowness())
    assert f"Paused 'x': {reason}" in beat.log
    since = len(cluster.probe.runs("control"))
    eventually(lambda: len(cluster.probe.runs("control")) >= since + 3, 30, "three more runs of the control")
    assert ["failed"] * 3 == ends(cluster, "x")
    assert 3 == len(cluster.probe.runs("x"))


def test_a_success_or_a_resume_resets_the_count_of_failures(cluster: Cluster) -> None:
    worker(cluster)
    cluster.beat(app=APP)
    insert(cluster.database, "x", "every 1s", task="app.fail_but", args=["x", [3]], pause_after_failures=3)

    paused(cluster, "x")
    before = ["failed", "failed", "succeeded", "failed", "failed", "failed"]
    assert before == ends(cluster, "x")

    sql(cluster.database, "select pgbeat.resume('x')")
    paused(cluster, "x")
    assert before + ["failed"] * 3 == ends(cluster, "x")


def test_no_buffered_job_starts_after_the_third_failure(cluster: Cluster) -> None:
    worker(cluster)
    cluster.beat()
    insert(cluster.database, "x", "every 1s", args=["x", 2.5, True], overlap="buffer_all", pause_after_failures=3)

    paused(cluster, "x")
    eventually(
        lambda: not [job for job in jobs(cluster.database, "x") if job["finished_at"] is None], 20, "nothing waits"
    )

    assert ["failed"] * 3 == ends(cluster, "x")
    others = [(job["state"], job["reason"]) for job in jobs(cluster.database, "x") if not job["started_at"]]
    assert {("skipped", "paused")} == set(others)


@both_brokers
def test_a_failed_job_waits_for_a_decision_whatever_dies_meanwhile(cluster: Cluster) -> None:
    first = worker(cluster)
    beat = cluster.beat()
    insert(cluster.database, "x", "every 1s", args=["x", 0, True], on_error="ask")
    eventually(lambda: ["error"] == ends(cluster, "x"), 40, "the failure")
    (asking,) = [job for job in jobs(cluster.database, "x") if job["state"] == "error"]

    first.kill()
    beat.kill()
    worker(cluster)
    cluster.beat()
    insert(cluster.database, "control", "every 1s", args=["control", 0])
    eventually(lambda: len(cluster.probe.runs("control")) >= 3, 40, "three runs of the control")
    assert 1 == len(cluster.probe.runs("x"))
    (made,) = sql(cluster.database, "select * from pgbeat.retry_job(%(id)s)", id=asking["id"])
    assert asking["id"] == made["job"]
    eventually(lambda: len(cluster.probe.runs("x")) >= 2, 40, "the same job again")
    eventually(lambda: ["error"] == ends(cluster, "x"), 40, "its second failure")
    assert 2 == len(cluster.probe.runs("x"))

    sql(cluster.database, "select pgbeat.fail_job(%(id)s, 'it never works')", id=asking["id"])

    eventually(lambda: ["failed", "error"] == ends(cluster, "x"), 40, "the next run, which fails and asks")
    (given_up, *_) = [job for job in jobs(cluster.database, "x") if job["state"] == "failed"]
    assert ": it never works; " in given_up["error"]
