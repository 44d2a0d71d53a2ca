"""Rows without a schedule: a program starts their jobs, with arguments, inside its own transaction."""

from __future__ import annotations

from contextlib import closing

import pytest

from celery_pgbeat import PgBeat
from tests.harness import broker
from tests.harness.broker import both_brokers
from tests.harness.probe import Run
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually

MANY = 500


@both_brokers
def test_b14_staged_jobs_run_with_their_own_arguments_after_the_commit_and_never_by_themselves(
    cluster: Cluster,
) -> None:
    """The row ticks beside it show that the beat is at work all the while."""
    insert(cluster.database, "staged", None, args=["nobody's"], overlap="allow")
    insert(cluster.database, "ticks", "every 1s", args=["ticks"])
    cluster.worker(concurrency=2)
    cluster.beat()
    wanted = [{"name": "staged", "args": [f"job-{number}"]} for number in range(MANY)]
    with closing(PgBeat(url=cluster.database)) as beat:
        own = beat.database.engine.execution_options(isolation_level="READ COMMITTED")
        with own.connect() as theirs:
            beat.trigger_many(jobs=wanted, connection=theirs)
            ticks = len(cluster.probe.runs("ticks"))
            eventually(lambda: len(cluster.probe.runs("ticks")) >= ticks + 2, 30, "the beat works on")
            theirs.rollback()
        with own.connect() as theirs:
            made = beat.trigger_many(jobs=wanted, connection=theirs)
            ticks = len(cluster.probe.runs("ticks"))
            eventually(lambda: len(cluster.probe.runs("ticks")) >= ticks + 2, 30, "the beat works on")
            assert [] == staged_runs(cluster)
            theirs.commit()

        eventually(lambda: len(staged_runs(cluster)) == MANY, 60, "all have run")
        assert {str(job): given["args"][0] for job, given in zip(made, wanted, strict=True)} == {
            run.job: run.label for run in staged_runs(cluster)
        }
        eventually(lambda: {"succeeded"} == {job["state"] for job in jobs(cluster.database, "staged")}, 30, "all ended")
        assert {"manual"} == {job["origin"] for job in jobs(cluster.database, "staged")}
        assert MANY == len(jobs(cluster.database, "staged"))


def test_a_staged_job_that_fails_is_retried_with_the_arguments_that_it_was_given(cluster: Cluster) -> None:
    insert(cluster.database, "staged", None, args=["the row's"], overlap="allow")
    cluster.worker()
    cluster.beat()
    with closing(PgBeat(url=cluster.database)) as beat:
        good, bad = beat.trigger_many(
            jobs=[{"name": "staged", "args": ["good"]}, {"name": "staged", "args": ["bad"], "kwargs": {"fail": True}}]
        )
        eventually(lambda: {"succeeded", "failed"} == {job.state for job in beat.jobs("staged")}, 30, "both ended")
        assert ("succeeded", "failed") == (beat.job(good).state, beat.job(bad).state)

        beat.retry_job(bad)

        eventually(lambda: len(cluster.probe.runs("bad")) == 2, 30, "it runs again")
    assert 1 == len(cluster.probe.runs("good"))


def test_a_call_that_is_refused_sends_nothing(cluster: Cluster) -> None:
    """The control: the same jobs without the wrong one are sent."""
    insert(cluster.database, "staged", None, args=["the row's"], overlap="allow")
    cluster.beat()
    call = "select from pgbeat.trigger_many(%s::jsonb)"
    fine = '{"name": "staged", "args": [1]}'

    with pytest.raises(Exception, match=r"jobs\[1\]: args is 7, not a JSON array"):
        sql(cluster.database, call.replace("%s", f"'[{fine}, {fine.replace('[1]', '7')}]'"))
    sql(cluster.database, call.replace("%s", f"'[{fine}, {fine}]'"))

    eventually(lambda: len([job for job in jobs(cluster.database) if job["state"] == "sent"]) == 2, 20, "both are sent")
    assert 2 == broker.depth(cluster.broker) == len(jobs(cluster.database))


def staged_runs(cluster: Cluster) -> list[Run]:
    """Return the runs of the jobs of the row, whatever their label."""
    return [run for run in cluster.probe.runs() if run.periodic_task == "staged"]
