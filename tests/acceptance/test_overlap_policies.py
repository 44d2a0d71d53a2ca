"""P4: no overlap, by the other policies: what waits, what is replaced; and jobs on which no worker reports."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.harness import checker
from tests.harness.broker import both_brokers, drain
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually


@pytest.mark.slow
def test_p4_buffer_one_sends_the_buffered_job_as_soon_as_the_running_one_ends(cluster: Cluster) -> None:
    cluster.worker(concurrency=4)
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "one", "every 1s", args=["one", 3.5], overlap="buffer_one")
    eventually(lambda: len(cluster.probe.runs("one")) == 3, 30, "three runs")

    first, second, third = cluster.probe.runs("one")
    assert [] == checker.overlapping([first, second])
    assert first.finished_at is not None
    assert second.started_at - first.finished_at < timedelta(seconds=1)
    # The first that waited, not the latest: it is the tick after the one that ran.
    assert second.scheduled_for is not None
    assert first.scheduled_for is not None
    assert timedelta(seconds=1) == second.scheduled_for - first.scheduled_for
    assert third.scheduled_for is not None
    skipped = [job for job in jobs(cluster.database, "one") if job["reason"] == "overlap"]
    assert skipped


@pytest.mark.slow
def test_p4_buffer_all_runs_every_occurrence_in_order_and_never_two_at_once(cluster: Cluster) -> None:
    cluster.worker(concurrency=4)
    for _ in range(2):
        cluster.beat(wait=False)
    insert(cluster.database, "all", "every 1s", args=["all", 1.3], overlap="buffer_all", max_runs=6)
    eventually(lambda: len([run for run in cluster.probe.runs("all") if run.finished_at]) == 6, 40, "six runs")

    runs = cluster.probe.runs("all")
    instants = [run.scheduled_for for run in runs if run.scheduled_for is not None]
    assert [instants[0] + timedelta(seconds=n) for n in range(6)] == instants
    assert [] == checker.overlapping(runs)
    assert {"succeeded"} == {job["state"] for job in jobs(cluster.database, "all")}


@both_brokers
@pytest.mark.slow
@pytest.mark.parametrize("overlap", ["cancel_other", "terminate_other"])
def test_p4_cancel_and_terminate_end_the_running_job_for_the_latest_one(cluster: Cluster, overlap: str) -> None:
    cluster.worker(concurrency=2)
    cluster.beat().wait_for_log("works on", 20)
    insert(cluster.database, "other", "every 4s", args=["other", 60], overlap=overlap)
    eventually(lambda: len(cluster.probe.runs("other")) == 2, 40, "the second one runs")

    first, second = cluster.probe.runs("other")
    assert second.scheduled_for is not None
    assert second.started_at - second.scheduled_for < timedelta(seconds=4)
    (ended,) = [job for job in jobs(cluster.database, "other") if str(job["id"]) == first.job]
    assert "revoked" == ended["state"]
    assert ended["finished_at"] <= second.started_at


@both_brokers
@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("backend", [True, False], ids=["with-a-result-backend", "without"])
def test_p5_full_tracking_does_not_block_if_workers_run_without_the_tracker(
    cluster: Cluster, redis_url: str, backend: bool
) -> None:
    cluster.settings = {"result_backend": redis_url} if backend else {}
    cluster.worker(settings={"imports": []})
    insert(cluster.database, "full", "every 1s", args=["full", 0])
    cluster.beat().wait_for_log("none of them reports", 120)

    eventually(lambda: len(cluster.probe.runs("full")) >= 4, 20, "it goes on")
    ended = {job["state"] for job in jobs(cluster.database, "full")} - {"skipped", "pending"}
    assert ("succeeded" if backend else "untracked") in ended
    assert row(cluster.database, "full")["tracking"] == "full"


@both_brokers
@pytest.mark.slow
def test_a_message_says_that_its_job_is_not_tracked_however_the_job_was_made(cluster: Cluster, broker_url: str) -> None:
    """So a worker needs no statement to know it, and none is early or late."""
    cluster.worker(queues="nothing", settings={"imports": []})  # it answers, and does not report
    beat = cluster.beat()
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
