"""on_error = 'ask': a job that failed waits in state `error` until somebody decides; nothing else changes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from celery import Celery
from click.testing import CliRunner, Result

from celery_pgbeat.cli import main
from celery_pgbeat.errors import (
    InvalidPeriodicTask,
    JobInTheWay,
    JobNotRetriable,
    NoDecisionNeeded,
    UnknownJob,
)
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.worker_queries import MessageCopy, Start, WorkerQueries
from celery_pgbeat.testing import PgBeatTest
from celery_pgbeat.worker.report.reports import (
    Finish,
    Killed,
    Lost,
    Report,
    Requeue,
    Retry,
    Unstarted,
    write,
    write_batch,
)
from tests.harness.kits import MakeKit
from tests.harness.ticks import LEASE

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
NOON = "2026-12-07T12:00Z"
FAILED = "ValueError: no such file"


@pytest.fixture
def kit(make_kit: MakeKit) -> Iterator[PgBeatTest]:
    app = Celery("shop", broker="redis://nowhere.invalid", set_as_current=False)
    app.conf.update(result_expires=None, timezone="UTC")
    with make_kit(app, NOON, finishing=False) as made:
        yield made


@pytest.fixture
def reports(kit: PgBeatTest) -> WorkerQueries:
    return WorkerQueries(kit.beat.database)


def add(kit: PgBeatTest, **columns: Any) -> None:
    kit.beat.schedule("a", "shop.report", "every 1h", **{"on_error": "ask", **columns})


def failed(kit: PgBeatTest, **columns: Any) -> UUID:
    """Return a job whose last attempt has failed."""
    add(kit, **columns)
    (sent,) = kit.advance("1h")
    kit.finish(sent, "failed", FAILED)
    return sent.id


def started(kit: PgBeatTest, reports: WorkerQueries, **columns: Any) -> Start:
    """Return the start of a job that runs."""
    add(kit, **columns)
    (sent,) = kit.advance("1h")
    start = Start(sent.id, 0, 0, uuid4(), "worker-1")
    assert reports.start(start, DAY)
    return start


def state(kit: PgBeatTest, job: UUID) -> str:
    return kit.beat.job(job).state


def test_a_failed_job_waits_blocks_its_row_and_is_found(kit: PgBeatTest) -> None:
    job = failed(kit)

    assert ("error", FAILED) == (kit.beat.job(job).state, kit.beat.job(job).error)
    assert [] == kit.advance("2h")
    assert {job} == {skipped.blocked_by for skipped in kit.skipped}
    assert f"job {job} failed at 2026-12-07 13:00:00Z ({FAILED}) and waits for a decision" in kit.beat.explain("a")
    (late,) = kit.beat.database.execute(f"select name, reason from {kit.beat.database.schema}.overdue")
    assert ("a", True) == (late.name, "waits for a decision" in late.reason)
    stuck = AdminQueries(kit.beat.database).stuck()
    assert (["decision"], 1) == ([*stuck], stuck["decision"]["number"])
    (shown,) = kit.beat.database.execute(f"select state, last_state from {kit.beat.database.schema}.status")
    assert ("error", "skipped") == tuple(shown)
    add(kit)
    kit.beat.schedule("b", "shop.report", "@yearly")
    assert (["a"], ["b"]) == tuple([row.name for row in kit.beat.list(with_problem=wanted)] for wanted in (True, False))


def test_a_failure_without_an_error_waits_as_well(kit: PgBeatTest) -> None:
    add(kit)
    (sent,) = kit.advance("1h")
    kit.finish(sent, "failed")

    assert f"job {sent.id} failed at 2026-12-07 13:00:00Z and waits for a decision" in kit.beat.explain("a")
    kit.beat.fail_job(sent.id)
    assert "given up by " in str(kit.beat.job(sent.id).error)


@pytest.mark.parametrize("became", ["pause", "unschedule"])
def test_a_retry_is_the_same_job_and_runs_whatever_became_of_its_row(kit: PgBeatTest, became: str) -> None:
    job = failed(kit, catchup="none", catchup_window="1m")
    kit.clock.advance("1d")
    getattr(kit.beat, became)("a")

    made = kit.beat.retry_job(job)

    assert (job, "a", "job") == (made.job, made.periodic_task, made.arguments_of)
    (again,) = kit.tick()
    assert (job, 1) == (again.id, again.run)
    kit.finish(again)
    assert "succeeded" == state(kit, job)


def test_a_job_that_is_given_up_says_who_decided_and_why_and_frees_its_row(kit: PgBeatTest) -> None:
    job = failed(kit, pause_after_failures=1)

    assert "a" == kit.beat.fail_job(job, "the supplier is closed")

    ended = kit.beat.job(job)
    assert ended.state == "failed"
    assert ended.error is not None
    assert ended.error.startswith("given up by ")
    assert ended.error.endswith(f": the supplier is closed; {FAILED}")
    kit.tick()
    assert not kit.beat.get("a").enabled


def test_it_may_fail_again_and_again(kit: PgBeatTest) -> None:
    job = failed(kit)
    for run in (1, 2, 3):
        kit.beat.retry_job(job)
        (again,) = kit.tick()
        assert run == again.run
        kit.finish(again, "failed", f"failure {run}")
        assert ("error", f"failure {run}") == (state(kit, job), kit.beat.job(job).error)


def test_under_fail_a_failure_is_final_as_ever(kit: PgBeatTest) -> None:
    assert "failed" == state(kit, failed(kit, on_error="fail"))


@pytest.mark.parametrize("many", [False, True])
def test_each_way_of_reporting_a_failure_asks(kit: PgBeatTest, reports: WorkerQueries, many: bool) -> None:
    start = started(kit, reports)
    other = Start(start.job, 0, 0, uuid4(), "worker-2")

    def report(*given: Report) -> None:
        if many:
            assert set() == write_batch(given, reports)
        else:
            write(given[0], reports)

    report(Finish(other, "failed", "of no start"))
    assert "running" == state(kit, start.job)
    report(Finish(start, "failed", FAILED))
    assert ("error", FAILED) == (state(kit, start.job), kit.beat.job(start.job).error)
    kit.beat.retry_job(start.job)
    kit.tick()
    copy = MessageCopy(start.job, 1, 0)
    report(Unstarted(copy, "failed", "worker-1", error="NotRegistered: no task"))
    assert ("error", "NotRegistered: no task") == (state(kit, start.job), kit.beat.job(start.job).error)


@pytest.mark.parametrize(
    "late",
    [
        lambda start: Finish(start, "succeeded", None),
        lambda start: Finish(start, "failed", "again"),
        lambda start: Retry(start, SECOND, "again"),
        lambda start: Requeue(start, "its process died", True),
        lambda start: Lost(start, "its process died"),
        lambda start: Killed(start, "failed", "TimeLimitExceeded"),
        lambda start: Unstarted(start, "expired", "worker-1"),
    ],
)
def test_nothing_that_comes_late_changes_a_job_that_waits_for_a_decision(
    kit: PgBeatTest, reports: WorkerQueries, late: Callable[[Start], Report]
) -> None:
    start = started(kit, reports, on_lost="rerun")
    write(Finish(start, "failed", FAILED), reports)

    write(late(start), reports)
    reports.heartbeat("worker-1", [start], LEASE)
    assert not reports.start(Start(start.job, 0, 0, uuid4(), "worker-2"), LEASE)
    assert not reports.start(start, LEASE)
    kit.advance("3d")

    assert ("error", FAILED) == (state(kit, start.job), kit.beat.job(start.job).error)


def test_a_terminated_job_is_revoked_although_its_process_reported_a_failure_first(
    kit: PgBeatTest, reports: WorkerQueries
) -> None:
    start = started(kit, reports, pause_after_failures=1)
    write(Finish(start, "failed", FAILED), reports)

    write(Killed(start, "revoked", "terminated"), reports)

    assert ("revoked", "terminated") == (state(kit, start.job), kit.beat.job(start.job).error)
    (count,) = kit.beat.database.execute(
        f"select failures_in_row, pause_due from {kit.beat.database.schema}.periodic_task_state"
    )
    assert (0, False) == tuple(count)


def test_a_job_that_exceeds_its_hard_time_limit_asks(kit: PgBeatTest, reports: WorkerQueries) -> None:
    start = started(kit, reports)

    write(Killed(start, "failed", "TimeLimitExceeded"), reports)

    assert ("error", "TimeLimitExceeded") == (state(kit, start.job), kit.beat.job(start.job).error)


def test_a_job_that_was_asked_to_end_is_revoked_and_needs_no_decision(kit: PgBeatTest, reports: WorkerQueries) -> None:
    start = started(kit, reports, overlap="cancel_other")
    kit.advance("1h")

    write(Finish(start, "failed", FAILED), reports)

    assert "revoked" == state(kit, start.job)


def test_the_next_occurrence_replaces_it_under_cancel_other(kit: PgBeatTest) -> None:
    job = failed(kit, overlap="cancel_other")

    (sent,) = kit.advance("1h")

    assert ("revoked", f"replaced for the next occurrence; {FAILED}") == (state(kit, job), kit.beat.job(job).error)
    assert sent.id != job


def test_what_waits_for_it_comes_to_its_turn_after_the_decision(kit: PgBeatTest) -> None:
    job = failed(kit, overlap="buffer_one")
    assert [] == kit.advance("1h")

    kit.beat.fail_job(job)

    assert ["a"] == [sent.periodic_task for sent in kit.tick()]


def test_it_keeps_its_place_in_its_group(kit: PgBeatTest) -> None:
    kit.beat.limit_group("g", 1)
    job = failed(kit, group_name="g")
    kit.beat.schedule("b", "shop.report", group_name="g")
    kit.beat.trigger("b")
    assert [] == kit.tick()

    kit.beat.fail_job(job)

    assert ["b"] == [sent.periodic_task for sent in kit.tick()]


@pytest.mark.parametrize("tracking", ["result", "send"])
def test_where_workers_do_not_report_nothing_asks(kit: PgBeatTest, tracking: str) -> None:
    add(kit, tracking=tracking)
    (sent,) = kit.advance("1h")

    BeatQueries(kit.beat.database, "beat-1", LEASE).finish_by_result([(sent.id, "failed")])

    assert {"result": "failed", "send": "untracked"}[tracking] == state(kit, sent.id)


def test_a_retry_message_that_comes_late_does_not_start_it(kit: PgBeatTest, reports: WorkerQueries) -> None:
    start = started(kit, reports)
    write(Retry(start, SECOND, "again"), reports)
    write(Killed(start, "failed", "TimeLimitExceeded"), reports)
    assert "retrying" == state(kit, start.job)
    second = Start(start.job, 0, 1, uuid4(), "worker-1")
    assert reports.start(second, DAY)
    write(Finish(second, "failed", FAILED), reports)

    for attempt in (1, 2, 3):
        assert not reports.start(Start(start.job, 0, attempt, uuid4(), "worker-2"), DAY)
        assert not reports.start_spaced(Start(start.job, 0, attempt, uuid4(), "worker-2"), DAY)

    assert "error" == state(kit, start.job)


def test_a_late_termination_does_not_erase_a_decision(kit: PgBeatTest, reports: WorkerQueries) -> None:
    start = started(kit, reports)
    write(Finish(start, "failed", FAILED), reports)
    kit.beat.fail_job(start.job, "closed")

    write(Killed(start, "revoked", "terminated"), reports)

    assert "failed" == state(kit, start.job)


def test_a_failure_counts_when_the_job_fails_and_a_decision_locks_no_count(kit: PgBeatTest) -> None:
    jobs = []
    for _ in range(2):
        jobs.append(failed(kit, overlap="cancel_other", pause_after_failures=2))
    kit.tick()
    assert not kit.beat.get("a").enabled

    transactional = kit.beat.database.engine.execution_options(isolation_level="READ COMMITTED")
    with transactional.connect() as connection:
        kit.beat.fail_job(jobs[-1], connection=connection)
        (unlocked,) = kit.beat.database.execute(
            f"select name from {kit.beat.database.schema}.periodic_task_state for update nowait"
        )

    assert "a" == unlocked.name


def test_a_decision_about_a_job_that_needs_none_changes_nothing(kit: PgBeatTest) -> None:
    job = failed(kit)
    kit.beat.fail_job(job)
    add(kit)
    (running,) = kit.advance("1h")
    before = [(one.id, one.state) for one in kit.beat.jobs()]

    with pytest.raises(NoDecisionNeeded, match=rf"^Job {job} of 'a' is failed: it waits for no decision$"):
        kit.beat.fail_job(job)
    with pytest.raises(NoDecisionNeeded, match=rf"^Job {running.id} of 'a' is sent: it waits for no decision$"):
        kit.beat.fail_job(running.id, "why not")
    with pytest.raises(JobNotRetriable, match="is sent, not final: wait for its end"):
        kit.beat.retry_job(running.id)
    with pytest.raises(UnknownJob, match="There is no job 00000000-0000-0000-0000-000000000007"):
        kit.beat.fail_job(UUID(int=7))
    with pytest.raises(InvalidPeriodicTask, match="reason has 1001 characters, more than 1000"):
        kit.beat.fail_job(job, "x" * 1001)

    assert before == [(one.id, one.state) for one in kit.beat.jobs()]


def test_a_trigger_says_what_stands_in_its_way(kit: PgBeatTest) -> None:
    job = failed(kit)

    with pytest.raises(JobInTheWay, match=rf"{job} \(error\)"):
        kit.beat.trigger("a")


def test_the_shell_decides(kit: PgBeatTest) -> None:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["--url", str(kit._settings.url), "--schema", kit._settings.schema, *words])

    job = str(failed(kit))

    listed = json.loads(run("jobs", "--state", "error", "--json").stdout)
    assert [job] == [one["id"] for one in listed]
    done = run("job", "retry", job)
    assert f"Retried 'a': job {job}, with the arguments of that job\n" == done.stdout
    (again,) = kit.tick()
    kit.finish(again, "failed", FAILED)
    done = run("job", "fail", job, "--reason", "closed")
    assert (0, f"Gave up a job of 'a': {job}\n") == (done.exit_code, done.stdout)
    refused = run("job", "fail", job)
    assert (1, f"Error: Job {job} of 'a' is failed: it waits for no decision\n") == (refused.exit_code, refused.stderr)


def test_a_decision_joins_the_callers_transaction(kit: PgBeatTest) -> None:
    job = failed(kit)

    transactional = kit.beat.database.engine.execution_options(isolation_level="READ COMMITTED")
    with transactional.connect() as connection:
        kit.beat.retry_job(job, connection=connection)
        connection.rollback()

    assert "error" == state(kit, job)
