"""A task whose `apply_async` sends no message does not block its own schedule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.deduplicating_app import LOCK
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs
from tests.harness.wait import eventually

APP = "tests.acceptance.deduplicating_app"
NAMES = ("later", "singleton", "graceful")


def found(cluster: Cluster, name: str) -> Counter[tuple[str, str | None]]:
    return Counter((job["state"], job["reason"]) for job in jobs(cluster.database, name))


def test_p4_p5_a_tick_that_sent_no_message_is_skipped_and_the_next_one_is_sent(
    cluster: Cluster, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    for name in NAMES:
        insert(cluster.database, name, task=f"app.{name}", args=[])
    environment = {LOCK: str(lock)}
    beat = cluster.beat(app=APP, environment=environment)
    cluster.worker(app=APP, environment=environment)

    not_sent = ("skipped", "not_sent")
    eventually(lambda: all(found(cluster, name)[not_sent] >= 3 for name in NAMES), 30, "three ticks of each")
    assert {"skipped"} == {state for name in NAMES for state, _ in found(cluster, name)} - {"pending"}

    lock.unlink()
    eventually(lambda: all(found(cluster, name)["succeeded", None] >= 2 for name in NAMES), 30, "each runs again")
    assert "the apply_async of its task 'app.graceful' has sent no message" in beat.log


def test_a_published_message_counts_whatever_apply_async_returned(cluster: Cluster) -> None:
    insert(cluster.database, "forgetful", task="app.forgetful", args=[])
    cluster.beat(app=APP)
    cluster.worker(app=APP)

    eventually(lambda: found(cluster, "forgetful")["succeeded", None] >= 2, 30, "it runs")
    assert 0 == found(cluster, "forgetful")["skipped", "not_sent"]


@pytest.mark.parametrize("propagates", [False, True])
def test_a_task_that_runs_eagerly_in_the_beat_ends_there_and_the_next_tick_is_sent(
    cluster: Cluster, propagates: bool
) -> None:
    cluster.settings = {"task_always_eager": True, "task_eager_propagates": propagates}
    insert(cluster.database, "good")
    insert(cluster.database, "bad", args=["bad", 0, True])
    cluster.beat()

    def ended(name: str, state: str) -> list[dict[str, Any]]:
        return [job for job in jobs(cluster.database, name) if job["state"] == state]

    eventually(lambda: len(ended("good", "succeeded")) >= 3 <= len(ended("bad", "failed")), 30, "three ticks of each")
    good, bad = ended("good", "succeeded"), ended("bad", "failed")
    assert {"ProbeFailed: bad"} == {job["error"] for job in bad}
    assert all(job["started_at"] and job["finished_at"] for job in good)
    assert {job["id"] for job in (*good, *bad)} <= {run.job for run in cluster.probe.runs()}
