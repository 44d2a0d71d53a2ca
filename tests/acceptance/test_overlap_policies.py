"""P4: no overlap, by the other policies: what waits, what is replaced; and jobs on which no worker reports."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.harness import checker
from tests.harness.broker import both_brokers, drain
from tests.harness.cost import slowness
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

PINGING = "tests.acceptance.pinging_app"
POLICIES: dict[str, dict[str, Any]] = {
    "allow": {"schedule": "every 1s", "args": ["allow", 6], "max_runs": 3},
    "buffer_one": {"schedule": "every 1s", "args": ["buffer_one", 3.5], "max_runs": 3},
    "buffer_all": {"schedule": "every 1s", "args": ["buffer_all", 1.3], "max_runs": 6},
    "cancel_other": {"schedule": "every 4s", "args": ["cancel_other", 60], "max_runs": 2},
    "terminate_other": {"schedule": "every 4s", "args": ["terminate_other", 60], "max_runs": 2},
}


@both_brokers
def test_p4_each_policy_says_what_becomes_of_a_run_that_is_due_while_another_runs(cluster: Cluster) -> None:
    """All but `skip`, the default, side by side."""
    cluster.worker(concurrency=8)
    for beat in [cluster.beat(wait=False) for _ in range(2)]:
        beat.wait_for_log("works on", 30)
    for overlap, columns in POLICIES.items():
        insert(cluster.database, overlap, overlap=overlap, **columns)
    eventually(
        lambda: all(len(cluster.probe.runs(name)) == row["max_runs"] for name, row in POLICIES.items()), 40, "all run"
    )
    ended = "select from pgbeat.active_job where periodic_task like 'buffer%%'"
    eventually(lambda: not sql(cluster.database, ended), 20, "what waited has ended")

    runs = {name: cluster.probe.runs(name) for name in POLICIES}
    assert 3 == checker.most_at_once(runs["allow"])
    assert [] == checker.overlapping(runs["buffer_one"])
    first, second, _ = runs["buffer_one"]
    assert second.started_at - first.finished_at < timedelta(seconds=slowness())
    assert timedelta(seconds=1) == second.scheduled_for - first.scheduled_for, "the first that waited, not the latest"
    assert [job for job in jobs(cluster.database, "buffer_one") if job["reason"] == "overlap"]
    instants = [run.scheduled_for for run in runs["buffer_all"]]
    assert [instants[0] + timedelta(seconds=number) for number in range(6)] == instants
    assert [] == checker.overlapping(runs["buffer_all"])
    assert {"succeeded"} == {job["state"] for job in jobs(cluster.database, "buffer_all")}
    for overlap in ("cancel_other", "terminate_other"):
        first, second = runs[overlap]
        assert second.started_at - second.scheduled_for < timedelta(seconds=30), "not after the first, which takes 60"
        (replaced,) = [job for job in jobs(cluster.database, overlap) if str(job["id"]) == first.job]
        assert "revoked" == replaced["state"]
        assert replaced["finished_at"] <= second.started_at


@both_brokers
def test_p4_a_queued_job_is_revoked_for_the_latest_one_and_its_message_starts_nothing(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "queued", "every 1s", overlap="cancel_other")
    eventually(lambda: len(jobs(cluster.database, "queued")) >= 4, 20, "four ticks without a worker")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    cluster.worker()
    eventually(lambda: cluster.probe.runs("queued"), 30, "the last one runs")

    *withdrawn, last = jobs(cluster.database, "queued")
    eventually(lambda: jobs(cluster.database, "queued")[-1]["state"] == "succeeded", 10, "it succeeds")
    assert {"revoked"} == {job["state"] for job in withdrawn}
    assert [str(last["id"])] == [run.job for run in cluster.probe.runs("queued")]


def test_p5_without_tracking_workers_the_result_backend_unblocks_the_next_occurrence(
    cluster: Cluster, redis_url: str
) -> None:
    cluster.settings = {"result_backend": redis_url}
    cluster.worker(settings={"imports": []})
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "quiet", "every 1s", args=["quiet", 2.5], tracking="result")
    eventually(lambda: len(cluster.probe.runs("quiet")) == 3, 30, "three runs")

    assert [] == checker.overlapping(cluster.probe.runs("quiet")[:2])
    states = {job["state"] for job in jobs(cluster.database, "quiet") if job["state"] != "skipped"}
    assert "succeeded" in states
    assert [] == [job for job in jobs(cluster.database, "quiet") if job["state"] == "lost"]


@pytest.mark.parametrize("backend", [True, False], ids=["with-a-result-backend", "without"])
def test_p5_full_tracking_does_not_block_if_workers_run_without_the_tracker(
    cluster: Cluster, redis_url: str, backend: bool
) -> None:
    cluster.settings = {"result_backend": redis_url} if backend else {}
    cluster.worker(settings={"imports": []})
    insert(cluster.database, "full", "every 1s", args=["full", 0])
    cluster.beat(app=PINGING).wait_for_log("none of them reports", 120)

    eventually(lambda: len(cluster.probe.runs("full")) >= 4, 20, "it goes on")
    ended = {job["state"] for job in jobs(cluster.database, "full")} - {"skipped", "pending"}
    assert ("succeeded" if backend else "untracked") in ended
    assert row(cluster.database, "full")["tracking"] == "full"


@both_brokers
def test_a_message_says_that_its_job_is_not_tracked_however_the_job_was_made(cluster: Cluster, broker_url: str) -> None:
    """So a worker needs no statement to know it, and none is early or late."""
    cluster.worker(queues="nothing", settings={"imports": []})  # it answers, and does not report
    beat = cluster.beat(app=PINGING)
    beat.wait_for_log("works on", 20)
    insert(cluster.database, "untracked", "every 1s", tracking="send")
    insert(cluster.database, "result", "every 1s", tracking="result", overlap="allow")
    insert(cluster.database, "full", "every 1s", overlap="allow")
    insert(cluster.database, "buffered", "every 1s", tracking="send", overlap="buffer_one", group_name="one")
    sql(cluster.database, "select pgbeat.limit_group('one', 1)")
    sql(cluster.database, "select pgbeat.trigger('untracked', force => true)")
    sql(cluster.database, "select pgbeat.backfill('untracked', now() - interval '3 seconds', now())")
    eventually(lambda: len(jobs(cluster.database, "full")) >= 3, 20, "three jobs while the tracking is not known")
    beat.wait_for_log("full acts as send", 120)
    known = len(jobs(cluster.database))
    eventually(lambda: len(jobs(cluster.database)) > known + 12, 20, "further jobs")
    assert 0 == beat.stop()

    said = {
        (header["periodic_task"], header["origin"], header.get("tracking"))
        for header in (message.headers["pgbeat"] for message in drain(broker_url))
    }
    assert {
        ("untracked", "schedule", "send"),
        ("untracked", "manual", "send"),
        ("untracked", "backfill", "send"),
        ("buffered", "schedule", "send"),
        ("full", "schedule", None),
        ("full", "schedule", "send"),
        ("result", "schedule", None),
    } == said
