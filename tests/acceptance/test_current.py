"""What a task knows of its own job, and may do to its own row."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.harness.cost import slowness
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row
from tests.harness.sending import APP, sender, worker
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)


def starts(cluster: Cluster, label: str) -> list[datetime]:
    return [run.started_at for run in cluster.probe.runs(label)]


def started(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    """Return the jobs that have started. (On a busy machine an occurrence may meet the job of the one before it.)"""
    return [job for job in jobs(cluster.database, name) if job["started_at"]]


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_task_that_cancels_itself_at_its_third_run_does_not_run_a_fourth_time(cluster: Cluster, pool: str) -> None:
    worker(cluster, pool=pool)
    cluster.beat(app=APP)
    insert(cluster.database, "x", "every 1s", task="app.cancel_itself", args=["x", 3])
    eventually(lambda: not row(cluster.database, "x")["enabled"], 30, "the pause")
    eventually(lambda: [job["state"] for job in started(cluster, "x")] == ["succeeded"] * 3, 20, "three runs")
    with pytest.raises(AssertionError, match="not within"):
        eventually(lambda: len(starts(cluster, "x")) > 3, 4, "a fourth run")

    paused = row(cluster.database, "x")
    third = started(cluster, "x")[2]
    assert ("it has run often enough", f"job {third['id']}", None) == (
        paused["pause_reason"],
        paused["paused_by"],
        paused["paused_until"],
    )


def test_a_task_that_snoozes_runs_again_at_its_first_occurrence_after_the_pause(cluster: Cluster) -> None:
    """And a beat that is started anew meanwhile knows it."""
    worker(cluster)
    beat = cluster.beat(app=APP)
    insert(cluster.database, "x", "every 2s", task="app.snooze_itself", args=["x", 7])
    eventually(lambda: row(cluster.database, "x")["paused_until"], 30, "the pause")
    until = row(cluster.database, "x")["paused_until"]
    beat.stop()
    beat.start()
    eventually(lambda: len(starts(cluster, "x")) >= 3, 40, "two more runs")

    first, *others = jobs(cluster.database, "x")
    assert until <= others[0]["started_at"] <= until + 2 * SECOND + 2 * SECOND  # the grid, and a busy machine
    assert others[0]["scheduled_for"] - 2 * SECOND < until <= others[0]["scheduled_for"]
    assert [] == [job for job in others if job["state"] == "skipped"]
    distance = others[0]["scheduled_for"] - first["scheduled_for"]
    assert timedelta(0) == distance % (2 * SECOND)


def test_a_task_that_reschedules_itself_runs_at_its_new_times(cluster: Cluster) -> None:
    worker(cluster)
    cluster.beat(app=APP)
    insert(cluster.database, "x", "every 1s", task="app.reschedule_itself", args=["x", "every 3s"])
    eventually(lambda: len(starts(cluster, "x")) >= 3, 40, "three runs")

    assert "every 3s" == row(cluster.database, "x")["schedule"]
    instants = [job["scheduled_for"] for job in started(cluster, "x")]
    assert [3 * SECOND] == [later - earlier for earlier, later in pairwise(instants[1:3])]


def test_a_soft_time_limit_ends_its_own_run_and_not_the_next_one(cluster: Cluster) -> None:
    worker(cluster)
    cluster.beat()
    insert(cluster.database, "x", "every 6s", args=["x", 600], max_run_time="3 seconds", overlap="allow")
    runs = eventually(
        lambda: (found := cluster.probe.runs("x")) and len(found) >= 2 and found[0].finished_at and found,
        40,
        "two runs",
    )

    assert runs[0].finished_at is not None
    assert 2 * SECOND <= runs[0].finished_at - runs[0].started_at <= 4 * SECOND * slowness()
    first, second = jobs(cluster.database, "x")[:2]
    eventually(lambda: jobs(cluster.database, "x")[0]["state"] == "failed", 10, "its end")
    assert "SoftTimeLimitExceeded" in jobs(cluster.database, "x")[0]["error"]
    assert 6 * SECOND == second["scheduled_for"] - first["scheduled_for"]
    assert second["started_at"] - second["scheduled_for"] < 2 * SECOND * slowness()


def test_the_hard_limit_kills_a_task_that_ignores_its_soft_time_limit(cluster: Cluster) -> None:
    worker(cluster)
    cluster.beat()
    insert(cluster.database, "x", None, task="app.stubborn", args=["x", 600], max_run_time="2 s", next_run_at="now")
    eventually(lambda: [job["state"] for job in jobs(cluster.database, "x")] == ["failed"], 60, "its end")

    (job,) = jobs(cluster.database, "x")
    assert "TimeLimitExceeded: it ran for more than 4.0 s" == job["error"]
    assert 3 * SECOND <= job["finished_at"] - job["started_at"] <= 6 * SECOND * slowness()


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_task_can_read_how_much_of_its_soft_time_limit_is_left(cluster: Cluster, pool: str) -> None:
    with sender(cluster) as sending:
        worker(cluster, pool=pool)
        boxed = sending.send_job("app.quota", "boxed", soft_time_limit=3)
        sending.wait_for(boxed, "succeeded")
        sending.wait_for(sending.send_job("app.quota", "free"), "succeeded")
    (run,) = cluster.probe.runs("boxed")
    assert run.finished_at is not None
    assert SECOND < run.finished_at - run.started_at < 3 * SECOND * slowness()
