"""What became of a job: each way in which a run, or a message, can end has its own final state."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import celery
import pytest
import redis

from celery_pgbeat.embedded.databases import drop_database
from tests.harness.broker import both_brokers
from tests.harness.databases import copy_database
from tests.harness.jobs import active, finished
from tests.harness.processes import Cluster
from tests.harness.sending import Sender, sender, worker
from tests.harness.wait import eventually

# Alive for the whole module, beside the numbers that `redis_url` gives to single tests.
REDIS_NUMBER = 15 if "PGBEAT_TEST_REDIS_URL" in os.environ else 500


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: str,
    redis_server: str,
    migrated_template: str,
    unique_name: Callable[[], str],
) -> Iterator[Sender]:
    """One worker for all tests that leave it as it was."""
    name = unique_name()
    database = copy_database(postgres_server, name, migrated_template)
    made = Cluster(
        tmp_path_factory.mktemp("shared"),
        database,
        urlsplit(redis_server)._replace(path=f"/{REDIS_NUMBER}").geturl(),
        forks=True,
    )
    made.settings.update(result_backend=made.broker, worker_prefetch_multiplier=10)
    with sender(made) as sending:
        sending.app.control.purge()
        worker(made, concurrency=3)
        yield sending
        made.end()
    drop_database(postgres_server, name)


@pytest.fixture
def sending(cluster: Cluster, redis_url: str) -> Iterator[Sender]:
    cluster.settings["result_backend"] = redis_url
    with sender(cluster) as made:
        yield made


def last(sending: Sender, job: uuid.UUID) -> dict[str, Any]:
    found = finished(sending.database, job)
    assert found is not None
    return found


def runs(sending: Sender, label: str) -> int:
    return len(sending.cluster.probe.runs(label))


@pytest.mark.parametrize(
    ("task", "arguments", "state", "error"),
    [
        ("app.probe", (), "succeeded", None),
        ("app.probe", (0, True), "failed", "ProbeFailed: "),
        ("app.ignore", (), "succeeded", None),
        ("app.reject", (), "failed", "Reject: "),
        ("app.reject_early", (), "failed", "Reject: "),
        ("app.unwind", (0.1,), "succeeded", None),
        ("app.replace", (), "succeeded", None),
        ("app.die", (), "lost", "WorkerLostError: Worker exited prematurely: signal 9"),
        ("app.exit", (), "lost", "WorkerLostError: "),
    ],
)
def test_a_run_ends_in_its_own_state(
    shared: Sender, task: str, arguments: tuple[Any, ...], state: str, error: str | None
) -> None:
    label = str(uuid.uuid4())
    job = shared.send_job(task, label, *arguments)
    shared.wait_for(job, state)
    found = last(shared, job)
    assert 1 == runs(shared, label)
    assert found["error"] is None if error is None else found["error"].startswith(error)
    assert found["started_at"] <= found["finished_at"]


def test_an_error_is_cut_and_stored_without_characters_that_postgres_refuses(shared: Sender) -> None:
    label = "x" * 1000 + "\udc80"
    job = shared.send_job("app.probe", label[:900] + "\x01", 0, True)
    shared.wait_for(job, "failed")
    assert 500 == len(last(shared, job)["error"])


def test_a_hard_time_limit_fails_the_job(shared: Sender) -> None:
    job = shared.send_job("app.probe", str(uuid.uuid4()), 30, time_limit=1)
    shared.wait_for(job, "failed")
    assert "TimeLimitExceeded: it ran for more than 1 s" == last(shared, job)["error"]


def test_a_soft_time_limit_fails_the_job(shared: Sender) -> None:
    job = shared.send_job("app.probe", str(uuid.uuid4()), 30, soft_time_limit=1)
    shared.wait_for(job, "failed")
    assert "SoftTimeLimitExceeded" in last(shared, job)["error"]


def test_a_message_that_had_expired_ends_the_job(shared: Sender) -> None:
    label = str(uuid.uuid4())
    job = shared.send_job("app.probe", label, expires=datetime.now(timezone.utc) - timedelta(seconds=5))
    shared.wait_for(job, "expired")
    assert (0, None) == (runs(shared, label), last(shared, job)["started_at"])


def test_a_task_that_the_worker_does_not_have_fails_the_job(shared: Sender) -> None:
    job = shared.send_job("app.nobody_has_it", "x")
    shared.wait_for(job, "failed")
    assert "NotRegistered: no task is named 'app.nobody_has_it' at this worker" == last(shared, job)["error"]


def test_a_message_that_the_worker_cannot_read_fails_the_job(shared: Sender) -> None:
    job = shared.job()
    shared.send(job, "app.probe", "x", eta="the day after tomorrow")
    shared.wait_for(job, "failed")


def revoke(sending: Sender, job: uuid.UUID, **arguments: Any) -> None:
    sending.app.control.revoke(str(job), reply=True, timeout=2, **arguments)


def test_a_job_revoked_before_its_message_arrived_is_revoked(shared: Sender) -> None:
    job = shared.job()
    revoke(shared, job)
    shared.send(job, "app.probe", str(job))
    shared.wait_for(job, "revoked")
    assert 0 == runs(shared, str(job))


def test_a_job_revoked_while_it_waits_in_the_worker_is_revoked(shared: Sender) -> None:
    job = shared.job()
    shared.send(job, "app.probe", str(job), countdown=2)
    eventually(lambda: f"[{job}] received" in shared.cluster.nodes[0].log, 20, "its reception")
    revoke(shared, job)
    shared.wait_for(job, "revoked")
    assert 0 == runs(shared, str(job))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_job_terminated_while_it_runs_is_revoked(shared: Sender, name: str) -> None:
    job = shared.send_job("app.probe", str(uuid.uuid4()), 30)
    shared.wait_for(job, "running")
    revoke(shared, job, terminate=True, signal=name)
    shared.wait_for(job, "revoked")
    assert "terminated by signal" in last(shared, job)["error"]


def test_a_second_copy_that_is_revoked_does_not_end_the_job_that_runs(shared: Sender) -> None:
    job = shared.send_job("app.probe", str(uuid.uuid4()), 3)
    shared.wait_for(job, "running")
    revoke(shared, job)
    shared.send(job, "app.probe", "copy")
    eventually(
        lambda: f"Discarding revoked task: app.probe[{job}]" in shared.cluster.nodes[0].log, 20, "the copy's end"
    )
    shared.wait_for(job, "succeeded")


def test_a_retry_at_an_instant_waits_until_then(shared: Sender) -> None:
    job = shared.send_job("app.retry_at", "x")
    shared.wait_for(job, "retrying")
    row = active(shared.database, job)
    assert row is not None
    assert (1, None) == (row["attempt"], row["token"])
    assert timedelta(minutes=69) < row["patience"] <= timedelta(minutes=70)  # 10 min and the pickup deadline of 1 h


def test_a_retry_that_is_sent_without_an_exception_counts_as_an_attempt(shared: Sender) -> None:
    label = str(uuid.uuid4())
    job = shared.send_job("app.retry_and_go_on", label)
    shared.wait_for(job, "retrying")
    shared.wait_for(job, "succeeded")
    assert [0, 1] == [run.attempt for run in shared.cluster.probe.runs(label)]


def test_retries_that_run_out_fail_the_job(shared: Sender) -> None:
    job = shared.send_job("app.flaky", "x", 99, retries=10)
    shared.wait_for(job, "failed")
    assert 10 == last(shared, job)["attempt"]


def test_a_message_that_its_task_rejects_with_requeue_starts_the_job_again(shared: Sender, tmp_path: Path) -> None:
    label = str(uuid.uuid4())
    job = shared.send_job("app.reject_once", label, str(tmp_path / "flag"))
    shared.wait_for(job, "succeeded")
    assert [0, 0] == [run.attempt for run in shared.cluster.probe.runs(label)]


def test_a_killed_child_whose_message_goes_back_starts_the_job_again(shared: Sender, tmp_path: Path) -> None:
    label = str(uuid.uuid4())
    job = shared.send_job("app.die_once", label, str(tmp_path / "flag"))
    shared.wait_for(job, "succeeded")
    assert [0, 0] == [run.attempt for run in shared.cluster.probe.runs(label)]


@pytest.mark.skipif(celery.VERSION < (5, 7), reason="Celery 5.7 retries what a lost worker ran")
def test_a_killed_child_that_celery_retries_is_another_attempt(shared: Sender, tmp_path: Path) -> None:
    label = str(uuid.uuid4())
    job = shared.send_job("app.die_and_retry", label, str(tmp_path / "flag"))
    shared.wait_for(job, "succeeded")
    assert [0, 1] == [run.attempt for run in shared.cluster.probe.runs(label)]


def test_a_killed_child_of_a_job_that_may_run_again_leaves_the_job_running_until_its_deadline(shared: Sender) -> None:
    job = shared.send_job("app.die", str(uuid.uuid4()), columns={"on_lost": "rerun"})
    eventually(lambda: (active(shared.database, job) or {}).get("error"), 20, "the error")
    row = active(shared.database, job)
    assert row is not None
    assert "running" == row["state"]
    assert row["patience"] <= timedelta(seconds=30)


def test_a_killed_child_that_celery_has_overlooked_is_found_and_nobody_speaks_for_it(sending: Sender) -> None:
    # Celery looks once, often before the kernel has anybody to show. Here always, and it never looks again.
    worker(sending.cluster, app="tests.acceptance.blind_app", settings={"pgbeat_heartbeat": 0.2})
    label = str(uuid.uuid4())
    job = sending.send_job("app.die", str(uuid.uuid4()))
    silent = sending.send_job("app.die", label, columns={"on_lost": "rerun"})
    sending.wait_for(job, "lost", timeout=10)
    assert last(sending, job)["error"].startswith("WorkerLostError: ")
    eventually(lambda: (active(sending.database, silent) or {}).get("error"), 10, "the error")
    row = active(sending.database, silent)
    assert row is not None
    # It dies as soon as it has begun, and no heartbeat has come since; one may have been under way.
    (run,) = sending.cluster.probe.runs(label)
    assert row["busy_until"] < run.started_at + timedelta(seconds=30.4)


def test_revoked_overrules_the_failure_that_a_terminated_child_reports(sending: Sender) -> None:
    # A worker of its own: a child that outlives its termination leaves billiard calling its next death one too.
    node = worker(sending.cluster)
    job = sending.send_job("app.unwind", "x", 30)
    eventually(lambda: runs(sending, "x"), 20, "its start")
    revoke(sending, job, terminate=True)
    sending.wait_for(job, "revoked")
    node.wait_for_log("RuntimeError('unwound')", 20)
    assert "revoked" == last(sending, job)["state"]


def test_each_pool_reports_how_a_job_ended(sending: Sender) -> None:
    for pool in ("threads", "solo"):
        worker(sending.cluster, pool=pool, queues=pool)
        for task, state in (("app.probe", "succeeded"), ("app.unwind", "succeeded"), ("app.reject", "failed")):
            arguments = ("x", 0.1) if task == "app.unwind" else ("x",)
            sending.wait_for(sending.send_job(task, *arguments, queue=pool), state)


def test_a_task_that_leaves_by_exit_fails_in_a_pool_of_threads(sending: Sender) -> None:
    worker(sending.cluster, pool="threads")
    job = sending.send_job("app.exit", "x")
    sending.wait_for(job, "failed")
    assert "SystemExit: 3" == last(sending, job)["error"]


SOFT = {"worker_soft_shutdown_timeout": 1}


@both_brokers
@pytest.mark.parametrize(
    ("settings", "signals"),
    [(SOFT, [signal.SIGQUIT]), ({}, [signal.SIGQUIT]), (SOFT, [signal.SIGQUIT, signal.SIGINT])],
    ids=["soft", "cold", "asked twice"],
)
def test_a_job_that_a_shutdown_interrupts_goes_back_with_its_message_and_the_next_worker_runs_it(
    sending: Sender, tmp_path: Path, settings: dict[str, Any], signals: list[signal.Signals]
) -> None:
    """No beat is there to send it again; a message that was acknowledged early does not come back."""
    ending = worker(sending.cluster, settings=settings)
    job, early = sending.send_job("app.wait_once", "x", str(tmp_path / "flag")), sending.send_job("app.wait_early", "y")
    for each in (job, early):
        sending.wait_for(each, "running")
    successor = worker(sending.cluster)
    for number in signals:
        ending.signal(number)
    sending.wait_for(job, "succeeded")
    sending.wait_for(early, "lost")

    ending.wait(20)
    assert [0, 0] == [run.attempt for run in sending.cluster.probe.runs("x")]
    assert 1 == runs(sending, "y")
    assert "second message" not in successor.log


@both_brokers
def test_a_job_that_a_shutdown_interrupts_does_not_run_again_before_its_process_has_ended(
    sending: Sender, tmp_path: Path
) -> None:
    ending = worker(sending.cluster, settings=SOFT)
    job = sending.send_job("app.wait_once", "x", str(tmp_path / "flag"), 3)
    sending.wait_for(job, "running")
    worker(sending.cluster)
    sending.cluster.beat()
    ending.signal(signal.SIGQUIT)
    sending.wait_for(job, "succeeded")

    first, second = sending.cluster.probe.runs("x")
    assert first.finished_at is not None
    assert first.finished_at <= second.started_at


@pytest.mark.skipif(celery.VERSION < (5, 7), reason="Celery 5.7 gives such a message back")
def test_a_job_whose_message_a_hard_time_limit_gives_back_starts_again(sending: Sender, tmp_path: Path) -> None:
    worker(sending.cluster, settings={"task_acks_on_timeout": False})
    job = sending.send_job("app.wait_once", "x", str(tmp_path / "flag"), time_limit=1)
    sending.wait_for(job, "succeeded")
    assert 2 == runs(sending, "x")


def test_a_job_that_a_shutdown_interrupts_runs_again_although_its_message_was_dropped_before(
    sending: Sender, tmp_path: Path
) -> None:
    """As after a visibility_timeout: another worker had the message, and found the job running."""
    ending = worker(sending.cluster, settings=SOFT)
    arguments = ["x", str(tmp_path / "flag")]
    message = {
        "args": arguments,
        "kwargs": {},
        "options": {},
        "priority": None,
        "schedule": None,
        "timezone": None,
        "sensitive": False,
    }
    job = sending.send_job("app.wait_once", *arguments, columns={"message": json.dumps(message)})
    sending.wait_for(job, "running")
    redis.Redis.from_url(sending.cluster.broker).delete("unacked", "unacked_index")
    worker(sending.cluster)
    sending.cluster.beat()
    ending.signal(signal.SIGQUIT)
    sending.wait_for(job, "succeeded")
    assert 2 == runs(sending, "x")
