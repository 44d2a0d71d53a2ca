"""A job that has not succeeded is submitted again."""

from __future__ import annotations

from typing import Any, get_args
from uuid import UUID, uuid4

import pytest

from celery_pgbeat.api import PgBeat, RetriedJob
from celery_pgbeat.choices import ActiveState, FinalState, JobState
from celery_pgbeat.errors import JobInTheWay, JobNotRetriable, UnknownJob, UnknownPeriodicTask
from tests.harness.session import Session, reason


def end(session: Session, job: Any, state: str = "failed") -> None:
    """End a job as the statements of beats and workers do."""
    reason_of = {"skipped": "not_sent"}
    session.rows(
        "with gone as (delete from pgbeat.active_job as job where id = %s returning job) "
        "insert into pgbeat.finished_job select final.* from gone "
        "cross join lateral pgbeat.archived(job, %s, %s) as final",
        str(job),
        state,
        reason_of.get(state),
    )


def arguments(session: Session, job: UUID) -> tuple[Any, Any]:
    message = session.value("select message from pgbeat.active_job where id = %s", str(job))
    return message["args"], message["kwargs"]


@pytest.mark.parametrize("state", sorted(set(get_args(FinalState)) - {"succeeded"}))
def test_a_manual_job_that_has_not_succeeded_goes_again_with_its_own_arguments(
    beat: PgBeat, session: Session, state: str
) -> None:
    beat.schedule("a", "t", args=[1], kwargs={"a": 1}, queue="slow")
    first = beat.trigger("a", args=[2], kwargs={"b": 2})
    end(session, first, state)
    beat.update("a", args=[3], queue="fast")

    made = beat.retry_job(first)

    assert RetriedJob(made.job, "a", "job") == made
    assert made.job != first
    assert ([2], {"b": 2}) == arguments(session, made.job)
    stored = beat.job(made.job)
    assert ("manual", "pending", "fast") == (stored.origin, stored.state, stored.queue)
    end(session, made.job, state)
    assert ([2], {"b": 2}) == arguments(session, beat.retry_job(made.job).job)


def test_a_scheduled_job_goes_again_with_the_arguments_that_its_row_has_now(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t", args=[1])
    first = beat.trigger("a")
    session.rows("update pgbeat.active_job set origin = 'schedule'")
    end(session, first)
    beat.update("a", args=[3])

    made = beat.retry_job(str(first))

    assert "periodic task" == made.arguments_of
    assert ([3], {}) == arguments(session, made.job)


def test_a_lost_job_that_never_started_goes_again_with_its_own_arguments(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t", args=[1])
    first = beat.trigger("a")
    session.rows("update pgbeat.active_job set origin = 'schedule'")
    session.rows(
        "with gone as (delete from pgbeat.active_job as job returning job) insert into pgbeat.finished_job "
        "select final.* from gone cross join lateral pgbeat.lost(job) as final"
    )
    beat.update("a", args=[3])

    made = beat.retry_job(first)

    assert "job" == made.arguments_of
    assert ([1], {}) == arguments(session, made.job)


@pytest.mark.parametrize("state", sorted(set(get_args(ActiveState)) - {"error"}))
def test_a_job_that_is_not_final_is_refused(beat: PgBeat, session: Session, state: str) -> None:
    beat.schedule("a", "t", kind="human" if state == "created" else "task")
    job = beat.trigger("a")
    waits = {"buffered": "predecessor", "waiting": "upstream"}.get(state)
    session.rows("update pgbeat.active_job set state = %s, wait_reason = %s", state, waits)

    with pytest.raises(JobNotRetriable, match=f"Job {job} of 'a' is {state}, not final: wait for its end"):
        beat.retry_job(job)
    assert "55000" == session.refusal("select pgbeat.retry_job(%s)", str(job)).pgcode


def test_a_job_that_has_succeeded_is_refused(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t")
    job = beat.trigger("a")
    end(session, job, "succeeded")

    with pytest.raises(JobNotRetriable, match=r"has succeeded: trigger\(\) starts another one"):
        beat.retry_job(job)


def test_a_job_of_another_task_than_the_row_calls_now_is_refused(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t")
    job = beat.trigger("a", args=[1])
    end(session, job)
    beat.update("a", task="u")

    with pytest.raises(JobNotRetriable, match="called the task 't', and the periodic task calls 'u' now"):
        beat.retry_job(job)


def test_an_unknown_job_and_a_removed_row_are_named(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t")
    job = beat.trigger("a")
    end(session, job)
    unknown = uuid4()

    for read in (beat.retry_job, beat.job):
        with pytest.raises(UnknownJob, match=f"There is no job {unknown}: jobs are kept for pgbeat_retention"):
            read(unknown)
        with pytest.raises(UnknownJob, match="There is no job 'x': an id is a UUID"):
            read("x")
    assert "P0002" == session.refusal("select pgbeat.retry_job(%s)", str(unknown)).pgcode
    assert "id is null, not the id of a job" == reason(session.refusal("select pgbeat.retry_job(null)"))
    beat.unschedule("a")
    with pytest.raises(UnknownPeriodicTask, match="No periodic task is named 'a'"):
        beat.retry_job(job)


def test_another_job_in_the_way_refuses_it_unless_it_is_forced(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t")
    job = beat.trigger("a")
    end(session, job)
    other = beat.trigger("a")

    with pytest.raises(JobInTheWay, match=f"{other}.*force"):
        beat.retry_job(job)
    assert "55006" == session.refusal("select pgbeat.retry_job(%s)", str(job)).pgcode
    assert {other, beat.retry_job(job, force=True).job} == {job.id for job in beat.jobs("a") if not job.finished_at}


def test_a_retry_joins_the_transaction_of_the_caller(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t")
    job = beat.trigger("a")
    end(session, job)

    with beat.database.engine.execution_options(isolation_level="READ COMMITTED").connect() as theirs:
        made = beat.retry_job(job, connection=theirs).job
        assert "pending" == beat.job(made, connection=theirs).state
        theirs.rollback()
    assert [job] == [found.id for found in beat.jobs("a")]


def test_a_row_whose_arguments_a_beat_computes_is_retried_with_those(beat: PgBeat, session: Session) -> None:
    beat.schedule("a", "t", args=["<BeatLazyFunc>"])
    job = beat.trigger("a")
    end(session, job)
    session.rows("update pgbeat.periodic_task set lazy = true")

    assert "periodic task" == beat.retry_job(job).arguments_of


def test_a_state_that_does_not_exist_is_refused_with_the_one_that_was_meant(beat: PgBeat) -> None:
    with pytest.raises(ValueError, match=r"state is 'runing', not one of pending, .*\. Did you mean 'running'\?"):
        beat.jobs(state="runing")
    assert all([] == beat.jobs(state=state) for state in get_args(JobState))
