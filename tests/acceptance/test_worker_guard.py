"""One start: a job's task runs once, whatever happens to its messages."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.embedded import Postgres
from celery_pgbeat.errors import JobNotCancellable
from celery_pgbeat.postgres.database import Database
from tests.harness.broker import both_brokers, depth
from tests.harness.databases import migrate_database
from tests.harness.jobs import bury, state
from tests.harness.processes import Cluster
from tests.harness.rows import insert
from tests.harness.sending import Sender, sender, worker
from tests.harness.wait import eventually

POOLS = ["prefork", "threads", "solo"]


@pytest.fixture
def sending(cluster: Cluster, redis_url: str) -> Iterator[Sender]:
    cluster.settings["result_backend"] = redis_url
    with sender(cluster) as made:
        yield made


def dropped(cluster: Cluster, count: int) -> None:
    """Wait until this number of copies was dropped."""
    eventually(
        lambda: sum(node.log.count("second message of job") for node in cluster.nodes) == count, 20, f"{count} drops"
    )


def labels(cluster: Cluster) -> list[str]:
    return [run.label for run in cluster.probe.runs()]


@both_brokers
def test_one_of_five_copies_on_two_workers_starts(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    worker(cluster)
    job = sending.job()
    for _ in range(5):
        sending.send(job, "app.probe", "x", 1)
    sending.wait_for(job, "succeeded")
    dropped(cluster, 4)
    assert 1 == len(cluster.probe.runs("x"))
    assert "SUCCESS" == sending.result(job)


@both_brokers
def test_p3_a_job_that_is_sent_again_beside_its_message_starts_once(cluster: Cluster, sending: Sender) -> None:
    insert(cluster.database, "row", schedule=None, args=["x"])
    cluster.beat()
    with closing(PgBeat(url=cluster.database)) as beat:
        job = beat.trigger("row")
        sending.wait_for(job, "sent")
        beat.resend_job(job)
        eventually(lambda: depth(cluster.broker) == 2, 20, "both messages")
        sending.wait_for(job, "sent")

    worker(cluster)
    sending.wait_for(job, "succeeded")
    dropped(cluster, 1)
    assert ["x"] == labels(cluster)


@both_brokers
def test_a_job_whose_message_is_gone_is_sent_again_and_runs(cluster: Cluster, sending: Sender) -> None:
    insert(cluster.database, "row", schedule=None, args=["x"])
    cluster.beat()
    with closing(PgBeat(url=cluster.database)) as beat:
        job = beat.trigger("row")
        sending.wait_for(job, "sent")
        assert 1 == sending.app.control.purge()
        worker(cluster)
        beat.resend_job(job)

    sending.wait_for(job, "succeeded")
    assert ["x"] == labels(cluster)


def test_the_message_of_a_cancelled_job_starts_nothing(cluster: Cluster, sending: Sender) -> None:
    job = sending.send_job("app.probe", "x")
    with closing(PgBeat(url=cluster.database)) as beat:
        beat.cancel_job(job)
    worker(cluster)

    dropped(cluster, 1)
    assert ([], "revoked") == (labels(cluster), state(sending.database, job))


def test_a_running_job_ends_as_the_refusal_of_its_cancellation_says(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.send_job("app.probe", "x", 60)
    sending.wait_for(job, "running")
    with closing(PgBeat(url=cluster.database)) as beat, pytest.raises(JobNotCancellable) as refused:
        beat.cancel_job(job)
    _, _, way_out = str(refused.value).partition("end it with Celery, ")

    assert f"app.control.revoke('{job}', terminate=True)" == way_out
    sending.app.control.revoke(str(job), terminate=True)
    sending.wait_for(job, "revoked")


@pytest.mark.parametrize("pool", POOLS)
def test_a_copy_after_the_end_starts_nothing_and_leaves_the_result(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    worker(cluster, pool=pool)
    well, badly = sending.send_job("app.probe", "well"), sending.send_job("app.probe", "badly", 0, True)
    sending.wait_for(well, "succeeded")
    sending.wait_for(badly, "failed")
    sending.send(well, "app.probe", "well")
    sending.send(badly, "app.probe", "badly", 0, True)
    dropped(cluster, 2)
    sending.wait_for(sending.send_job("app.probe", "last"), "succeeded")
    assert ["badly", "last", "well"] == sorted(labels(cluster))
    assert ("SUCCESS", "FAILURE") == (sending.result(well), sending.result(badly))


@pytest.mark.parametrize("pool", POOLS)
def test_a_retry_is_another_attempt_and_a_stray_copy_of_the_first_is_none(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    worker(cluster, pool=pool)
    job = sending.send_job("app.flaky", "x", 2)
    sending.wait_for(job, "retrying")
    sending.send(job, "app.flaky", "x", 2)
    sending.wait_for(job, "succeeded")
    dropped(cluster, 1)
    runs = cluster.probe.runs("x")
    assert [0, 1, 2] == [run.attempt for run in runs]
    assert {"row"} == {run.periodic_task for run in runs}  # the header survives Celery's retries


@pytest.mark.parametrize("pool", POOLS)
def test_a_message_without_our_header_runs_as_usual(cluster: Cluster, sending: Sender, pool: str) -> None:
    worker(cluster, pool=pool, concurrency=1)
    task_id = str(uuid.uuid4())
    for _ in range(2):
        sending.app.send_task("app.probe", ("x", 1), task_id=task_id)
    eventually(lambda: sending.app.AsyncResult(task_id).state == "STARTED", 20, "Celery's own STARTED")
    eventually(lambda: len([run for run in cluster.probe.runs("x") if run.finished_at]) == 2, 20, "two runs")
    assert [] == sending.database.execute("select * from pgbeat.job")


def test_a_running_job_is_started_in_the_result_backend(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.send_job("app.probe", "x", 2)
    eventually(lambda: sending.result(job) == "STARTED", 20, "STARTED")
    unheard = sending.send_job("app.probe", "unheard", 2, ignore_result=True)
    eventually(lambda: cluster.probe.runs("unheard"), 20, "a run")
    assert "PENDING" == sending.result(unheard)


@pytest.mark.parametrize("task", ["app.called", "app.wrapped", "app.late"])
def test_a_task_with_its_own_call_method_and_a_task_registered_late_are_guarded(
    cluster: Cluster, sending: Sender, task: str
) -> None:
    worker(cluster)
    job = sending.job(task=task)
    for _ in range(3):
        sending.send(job, task, "x")
    sending.wait_for(job, "succeeded")
    dropped(cluster, 2)
    wrapping = ["x-before", "x-call"] if task == "app.wrapped" else []
    assert sorted(["x", *wrapping]) == sorted(labels(cluster))


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_task_registered_late_is_guarded_in_a_pool_without_processes(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    worker(cluster, pool=pool)
    job = sending.job(task="app.late")
    for _ in range(3):
        sending.send(job, "app.late", "x")
    sending.wait_for(job, "succeeded")
    dropped(cluster, 2)
    assert ["x"] == labels(cluster)


def test_direct_calls_inside_a_job_are_not_the_job(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    sending.wait_for(sending.send_job("app.caller", "x"), "succeeded")
    assert ["x", "x-applied", "x-called", "x-run"] == sorted(labels(cluster))


def test_a_header_that_was_copied_into_another_message_is_not_the_job(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.send_job("app.probe", "x")
    sending.wait_for(job, "succeeded")
    header = {"job": str(job), "run": 0}
    sending.app.send_task("app.probe", ("child",), headers={"pgbeat": header})
    eventually(lambda: cluster.probe.runs("child"), 20, "the child's run")


def test_a_replacement_runs_under_the_job_s_id(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.send_job("app.replace", "x")
    sending.wait_for(job, "succeeded")
    eventually(lambda: cluster.probe.runs("x-instead"), 20, "the replacement's run")
    eventually(lambda: sending.result(job) == "SUCCESS", 20, "its result")


def test_a_message_whose_job_nobody_knows_is_not_run(cluster: Cluster, sending: Sender) -> None:
    node = worker(cluster)
    job = uuid.uuid4()
    sending.send(job, "app.probe", "x")
    node.wait_for_log(f"Job {job} is unknown", 20)
    sending.wait_for(sending.send_job("app.probe", "known"), "succeeded")
    assert ["known"] == labels(cluster)
    assert "PENDING" == sending.result(job)


UNTRACKED = {"tracking": "send"}


@pytest.mark.parametrize("pool", POOLS)
def test_each_message_of_a_job_that_is_not_tracked_runs_and_its_row_belongs_to_the_confirm(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    """The worker is faster than the confirm here, which ends what is known of the job."""
    worker(cluster, pool=pool)
    job = sending.job(state="pending", marked_by="beat", task="app.flaky", **UNTRACKED)
    for _ in range(2):
        sending.send(job, "app.flaky", "x", 1, header=UNTRACKED)
    eventually(lambda: len([run for run in cluster.probe.runs("x") if not run.failed]) == 2, 30, "two runs to the end")

    assert "pending" == state(sending.database, job)
    assert [0, 0, 1, 1] == sorted(run.attempt for run in cluster.probe.runs("x"))
    assert "SUCCESS" == sending.result(job)
    sending.database.run("confirm", beat="beat", jobs=[job], count=1, delays="{}")
    sending.send(job, "app.flaky", "later", 0, header=UNTRACKED)
    eventually(lambda: cluster.probe.runs("later"), 20, "a run after the confirm")
    assert "untracked" == state(sending.database, job)


def test_a_message_of_a_job_that_is_not_tracked_needs_no_postgres(
    cluster: Cluster, sending: Sender, own_postgres: Postgres
) -> None:
    migrate_database(own_postgres.url)
    worker(cluster, settings={"pgbeat_url": own_postgres.url, "pgbeat_guard_error": "refuse"})
    own_postgres.stop()
    sending.send(uuid.uuid4(), "app.probe", "x", header=UNTRACKED)
    eventually(lambda: [run for run in cluster.probe.runs("x") if run.finished_at], 5, "a run")
    assert not cluster.nodes[0].has_logged("unguarded")


@pytest.mark.parametrize("pool", POOLS)
def test_a_message_of_a_job_that_is_not_tracked_and_is_not_run_leaves_its_row_to_the_confirm(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    node = worker(cluster, pool=pool, settings={"pgbeat_allowed_tasks": ["app.probe", "app.gone"]})
    job = sending.job(state="pending", marked_by="beat", **UNTRACKED)
    for task in ("app.flaky", "app.late", "app.gone"):
        sending.send(job, task, "x", 0, header=UNTRACKED)
    sending.send(job, "app.probe", "x", header=UNTRACKED, expires=datetime.now(timezone.utc) - timedelta(seconds=5))
    sending.wait_for(sending.send_job("app.probe", "last"), "succeeded")
    node.wait_for_log("does not allow the task 'app.flaky'", 20)
    node.wait_for_log("does not allow the task 'app.late'", 20)

    assert ["last"] == labels(cluster)
    assert "pending" == state(sending.database, job)


def test_a_message_of_an_earlier_run_starts_nothing(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.job(run=1)
    sending.send(job, "app.probe", "old", run=0)
    dropped(cluster, 1)
    sending.send(job, "app.probe", "new", run=1)
    sending.wait_for(job, "succeeded")
    assert ["new"] == labels(cluster)


def test_a_lost_job_that_never_started_starts_when_its_message_arrives(cluster: Cluster, sending: Sender) -> None:
    worker(cluster)
    job = sending.job()
    bury(sending.database, job)
    for _ in range(2):
        sending.send(job, "app.probe", "x")
    sending.wait_for(job, "succeeded")
    dropped(cluster, 1)
    assert ["x"] == labels(cluster)


def test_a_task_that_the_app_does_not_allow_is_skipped(cluster: Cluster, sending: Sender) -> None:
    worker(cluster, settings={"pgbeat_allowed_tasks": ["app.p*"]})
    forbidden, allowed = sending.send_job("app.flaky", "forbidden", 0), sending.send_job("app.probe", "allowed")
    sending.wait_for(forbidden, "skipped")
    sending.wait_for(allowed, "succeeded")
    (row,) = sending.database.execute("select reason from pgbeat.job where state = 'skipped'")
    assert "not_allowed" == row.reason
    assert ["allowed"] == labels(cluster)


def test_a_message_of_another_task_with_the_id_of_a_job_is_dropped_and_the_job_still_starts(
    cluster: Cluster, sending: Sender
) -> None:
    node = worker(cluster, settings={"pgbeat_allowed_tasks": ["app.p*", "app.caller"]})
    job = sending.job()
    for task in ("app.caller", "app.flaky", "app.nowhere" + "x" * 5000):  # another one, a forbidden and an unknown one
        sending.send(job, task, "forged")
    node.wait_for_log("whose task is 'app.probe'", 20)
    node.wait_for_log("does not allow the task 'app.flaky'", 20)
    node.wait_for_log("Received unregistered task", 20)
    sending.wait_for(sending.send_job("app.probe", "after them"), "succeeded")
    assert "sent" == state(sending.database, job)

    sending.send(job, "app.probe", "genuine")
    sending.wait_for(job, "succeeded")
    assert ["after them", "genuine"] == labels(cluster)


@pytest.mark.parametrize("pool", POOLS)
def test_headers_with_the_names_of_our_request_attributes_change_nothing(
    cluster: Cluster, sending: Sender, pool: str
) -> None:
    worker(cluster, pool=pool, settings={"pgbeat_allowed_tasks": ["app.p*"]})
    known = {"start": None, "running": None, "has_retried": True}
    ours = dict.fromkeys(("_pgbeat_admission", "_pgbeat_start", "_pgbeat_running", "_pgbeat_retry_at"), known)
    job, forbidden = sending.job(), sending.job(task="app.flaky")
    for _ in range(2):
        sending.send(job, "app.probe", "x", headers=ours)
    sending.send(forbidden, "app.flaky", "forbidden", 0, headers=ours)
    sending.wait_for(job, "succeeded")
    sending.wait_for(forbidden, "skipped")
    dropped(cluster, 1)
    assert ["x"] == labels(cluster)


def test_spawned_processes_guard_and_report_like_forked_ones(cluster: Cluster, sending: Sender) -> None:
    worker(cluster, settings={"worker_pool_start_method": "spawn"})
    job = sending.job()
    for _ in range(3):
        sending.send(job, "app.probe", "x")
    sending.wait_for(job, "succeeded", 60)
    dropped(cluster, 2)
    assert ["x"] == labels(cluster)
    assert "without the worker's main process" not in cluster.nodes[0].log


def test_a_wrong_setting_ends_the_worker_with_an_error_that_names_it(cluster: Cluster, sending: Sender) -> None:
    node = worker(cluster, settings={"pgbeat_dead_after": "soon"}, wait=False)
    assert node.wait(30) != 0
    assert "pgbeat_dead_after is 'soon', not a number of seconds" in node.log


class Outage:
    """A worker whose Postgres is one of its own, while the truth about the runs is elsewhere."""

    def __init__(self, cluster: Cluster, sending: Sender, postgres: Postgres) -> None:
        migrate_database(postgres.url)
        self.cluster, self.sending, self.postgres = cluster, sending, postgres
        sending.database.close()
        sending.database = Database(postgres.url)

    def worker(self, patience: float, **settings: str) -> None:
        environment = {"PGBEAT_URL": self.postgres.url, "WORKER_START_TIMEOUT": str(patience)}
        worker(self.cluster, environment=environment, settings=settings)


@pytest.fixture
def outage(cluster: Cluster, sending: Sender, own_postgres: Postgres) -> Outage:
    return Outage(cluster, sending, own_postgres)


def test_a_start_waits_for_a_database_that_comes_back(outage: Outage) -> None:
    outage.worker(patience=20)
    job = outage.sending.job()
    outage.postgres.shut_down()
    for _ in range(2):
        outage.sending.send(job, "app.probe", "x")
    time.sleep(2)
    assert [] == labels(outage.cluster)
    outage.postgres.start()
    outage.sending.wait_for(job, "succeeded")
    dropped(outage.cluster, 1)
    assert ["x"] == labels(outage.cluster)


def test_a_job_runs_unguarded_when_the_database_stays_away(outage: Outage) -> None:
    outage.worker(patience=1)
    job = outage.sending.job()
    outage.postgres.shut_down()
    outage.sending.send(job, "app.probe", "x")
    eventually(lambda: outage.cluster.probe.runs("x"), 20, "a run")
    assert "runs unguarded (pgbeat_guard_error = 'run')" in outage.cluster.nodes[0].log
    outage.postgres.start()
    outage.sending.wait_for(job, "succeeded")


def test_with_guard_error_refuse_a_job_is_not_run_and_is_sent_again(outage: Outage) -> None:
    outage.worker(patience=1, pgbeat_guard_error="refuse")
    job = outage.sending.job()
    outage.postgres.shut_down()
    outage.sending.send(job, "app.probe", "x")
    outage.cluster.nodes[0].wait_for_log("is not run now, it will be sent again", 20)
    outage.postgres.start()
    outage.sending.wait_for(job, "sent")
    assert [] == labels(outage.cluster)
    outage.sending.send(job, "app.probe", "x")
    outage.sending.wait_for(job, "succeeded")


def test_what_became_of_a_job_is_told_when_the_database_is_back(outage: Outage) -> None:
    outage.worker(patience=1)
    job = outage.sending.send_job("app.probe", "x", 3)
    outage.sending.wait_for(job, "running")
    outage.postgres.shut_down()
    eventually(lambda: outage.sending.result(job) == "SUCCESS", 20, "the result")
    outage.postgres.start()
    outage.sending.wait_for(job, "succeeded")


def test_a_job_is_refused_if_the_schema_is_too_new_for_this_worker(cluster: Cluster, sending: Sender) -> None:
    sending.database.execute("update pgbeat.schema_version set version = 999, min_compatible = 999")
    node = worker(cluster, settings={"pgbeat_guard_error": "refuse"})
    job = sending.send_job("app.probe", "x")
    node.wait_for_log("is not run now", 20)
    assert "upgrade celery-pgbeat on this node" in node.log
    assert "sent" == state(sending.database, job)
    assert 0 == depth(cluster.broker)
