"""What a running job is asked: that it ends. Which it hears within two seconds, and nobody else does."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from celery_pgbeat.worker.stop.running import SIGNAL
from tests.harness.broker import both_brokers, depth
from tests.harness.cost import slowness
from tests.harness.jobs import finished, state
from tests.harness.probe import Run
from tests.harness.processes import Cluster
from tests.harness.sending import Sender, sender, worker
from tests.harness.wait import eventually


@pytest.fixture
def sending(cluster: Cluster, redis_url: str) -> Iterator[Sender]:
    cluster.settings["result_backend"] = redis_url
    with sender(cluster) as made:
        yield made


def started(sending: Sender, task: str, *args: Any, **options: Any) -> uuid.UUID:
    """Send a job and wait until its body runs; its label is its id."""
    job = sending.job(task=task, **options.pop("columns", {}))
    sending.send(job, task, str(job), *args, **options)
    eventually(lambda: sending.cluster.probe.runs(str(job)), 20, "its start")
    return job


def ask(sending: Sender, job: uuid.UUID, kind: str) -> datetime:
    """Ask as a submit does; return when."""
    (row,) = sending.database.execute(
        "update pgbeat.active_job set stop_request = %(kind)s where id = %(job)s returning clock_timestamp() as at",
        {"job": job, "kind": kind},
    )
    return row.at  # type: ignore[no-any-return]


def the_run(sending: Sender, job: uuid.UUID) -> Run:
    (run,) = sending.cluster.probe.runs(str(job))
    return run


def ended(sending: Sender, job: uuid.UUID) -> datetime:
    """Return when the body of a job ended, by whatever way."""
    run = eventually(lambda: [run for run in sending.cluster.probe.runs(str(job)) if run.finished_at], 20, "its end")
    assert run[0].finished_at is not None
    return run[0].finished_at


def error(sending: Sender, job: uuid.UUID) -> str | None:
    found = finished(sending.database, job)
    assert found is not None
    return found["error"]  # type: ignore[no-any-return]


# --- cancel


@both_brokers
def test_a_cancelled_job_gets_a_soft_time_limit_within_two_seconds(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job, other = started(sending, "app.probe", 60), started(sending, "app.probe", 6)
    at = ask(sending, job, "cancel")
    assert ended(sending, job) - at < timedelta(seconds=2 * slowness())
    sending.wait_for(job, "revoked")
    assert "asked to cancel: SoftTimeLimitExceeded: SoftTimeLimitExceeded()" == error(sending, job)
    sending.wait_for(other, "succeeded")
    sending.wait_for(started(sending, "app.probe"), "succeeded")
    assert 0 == depth(cluster.broker)


def test_a_stop_signal_for_another_job_does_not_stop_the_job_that_runs(cluster: Cluster, sending: Sender) -> None:
    """The process has gone on to another job by the time the signal arrives."""
    worker(cluster, concurrency=1)
    job = started(sending, "app.probe", 3)
    while sending.cluster.probe.runs(str(job))[0].finished_at is None:
        os.kill(the_run(sending, job).pid, SIGNAL)
        time.sleep(0.02)
    sending.wait_for(job, "succeeded")


def test_a_cancelled_job_that_still_succeeds_has_succeeded_and_is_logged_once(
    cluster: Cluster, sending: Sender
) -> None:
    node = worker(cluster)
    job = started(sending, "app.caught", "well")
    ask(sending, job, "cancel")
    sending.wait_for(job, "succeeded")
    assert 1 == node.log.count(f"Job {job} is asked to stop (cancel)")
    assert "SUCCESS" == sending.result(job)


def test_a_cancelled_job_that_retries_is_revoked_and_not_retried(cluster: Cluster, sending: Sender) -> None:
    node = worker(cluster)
    job = started(sending, "app.caught", "retry")
    ask(sending, job, "cancel")
    sending.wait_for(job, "revoked")
    node.wait_for_log(f"A second message of job {job} (run 0, attempt 1) is dropped: the job is revoked", 20)
    assert 1 == len(cluster.probe.runs(str(job)))


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_task_that_reads_cancelled_sees_that_its_job_is_cancelled(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    """A pool of processes then does not interrupt it, so that it can end in its own way."""
    worker(cluster, pool=pool)
    job = started(sending, "app.heeding", 60)
    at = ask(sending, job, "cancel")
    assert ended(sending, job) - at < timedelta(seconds=5)  # two of them in good order
    sending.wait_for(job, "succeeded")
    assert "in good order" == sending.app.AsyncResult(str(job)).get(timeout=5)


def test_a_heartbeat_does_not_remove_a_stop_request(cluster: Cluster, sending: Sender) -> None:
    worker(cluster, pool="threads", settings={"pgbeat_heartbeat": 0.2})
    job = started(sending, "app.probe", 3)
    ask(sending, job, "cancel")
    time.sleep(1.5)
    (row,) = sending.database.execute("select stop_request from pgbeat.active_job where id = %(job)s", {"job": job})
    assert "cancel" == row.stop_request
    sending.wait_for(job, "succeeded")


def test_a_job_that_dies_with_a_stop_request_is_lost_and_does_not_run_again(cluster: Cluster, sending: Sender) -> None:
    worker(cluster, pool="prefork")
    job = started(sending, "app.stubborn", 60, columns={"on_lost": "rerun"})
    ask(sending, job, "cancel")
    os.kill(the_run(sending, job).pid, 9)
    sending.wait_for(job, "lost")
    assert (error(sending, job) or "").startswith("asked to cancel: WorkerLostError: ")


def test_spawned_processes_get_the_stop_signal_too(cluster: Cluster, sending: Sender) -> None:
    worker(cluster, settings={"worker_pool_start_method": "spawn"})
    job = started(sending, "app.probe", 60)
    ask(sending, job, "cancel")
    sending.wait_for(job, "revoked")


# --- terminate


@both_brokers
def test_a_terminated_job_ends_and_the_worker_goes_on(cluster: Cluster, sending: Sender) -> None:
    node = worker(cluster, concurrency=1)
    job = started(sending, "app.stubborn", 60)
    at = ask(sending, job, "terminate")
    assert ended(sending, job) - at < timedelta(seconds=3 * slowness())
    sending.wait_for(job, "revoked")
    assert "asked to terminate: its process was ended" == error(sending, job)
    assert "REVOKED" == sending.result(job)
    after = started(sending, "app.probe")
    sending.wait_for(after, "succeeded")
    assert the_run(sending, job).pid != the_run(sending, after).pid
    assert 1 == node.log.count(f"Job {job} is asked to stop (terminate)")
    assert 0 == depth(cluster.broker)


def test_a_terminated_job_is_final_only_after_its_process_has_unwound(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = started(sending, "app.unwinding", 2)
    ask(sending, job, "terminate")
    sending.wait_for(job, "revoked")
    found = finished(sending.database, job)
    assert found is not None
    assert ended(sending, job) <= found["finished_at"]


def test_a_terminated_job_that_does_not_end_is_killed(cluster: Cluster, sending: Sender) -> None:
    node = worker(cluster, concurrency=1, environment={"WORKER_KILL_AFTER": "1"})
    job = started(sending, "app.undying")
    ask(sending, job, "terminate")
    node.wait_for_log(f"Job {job} did not end within 1 s: its process is killed", 20)
    sending.wait_for(job, "revoked")
    assert the_run(sending, job).finished_at is None
    sending.wait_for(started(sending, "app.probe"), "succeeded")


def test_a_cancelled_job_can_be_terminated_later(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = started(sending, "app.stubborn", 60)
    ask(sending, job, "cancel")
    time.sleep(2)
    assert "running" == state(sending.database, job)
    ask(sending, job, "terminate")
    sending.wait_for(job, "revoked")


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_pool_that_cannot_terminate_jobs_logs_it_once_and_the_task_can_read_cancelled(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    node = worker(cluster, pool=pool)
    for _ in range(2):
        job = started(sending, "app.heeding", 60)
        ask(sending, job, "terminate")
        sending.wait_for(job, "succeeded")
    assert 1 == node.log.count("cannot terminate jobs")
