"""The workers' statements: what each may change, and what it must leave alone."""

from __future__ import annotations

import dataclasses
import inspect
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.statements import files, parameters, statement
from celery_pgbeat.postgres.worker_queries import (
    Finish,
    JobState,
    MessageCopy,
    Start,
    StopRequest,
    Unstarted,
    WorkerQueries,
)
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.worker.start.guard import StartResult, retry_until_deadline, start_job
from tests.harness.jobs import HOUR, active, bury, finished, make_job, state
from tests.harness.reads import read_by
from tests.harness.session import Session
from tests.harness.wait import eventually

SILENCE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def database(shared_database: str) -> Iterator[Database]:
    made = Database(shared_database)
    yield made
    made.close()


@pytest.fixture
def reports(database: Database) -> WorkerQueries:
    database.execute("truncate pgbeat.active_job, pgbeat.finished_job, pgbeat.node")
    return WorkerQueries(database)


def start_of(job: uuid.UUID, run: int = 0, attempt: int = 0, worker: str = "worker-a") -> Start:
    return Start(job, run, attempt, uuid.uuid4(), worker)


def started(reports: WorkerQueries, **columns: Any) -> Start:
    """Make a job and start it."""
    start = start_of(make_job(reports.database, **columns), columns.get("run", 0), columns.get("attempt", 0))
    assert reports.start(start, SILENCE)
    return start


def finish_together(reports: WorkerQueries, start: Start) -> bool:
    """Finish one job among others; tell whether it is."""
    assert set() == reports.finish_many([Finish(start, "succeeded"), Finish(start_of(uuid.uuid4()), "failed", "x")])
    return state(reports.database, start.job) == "succeeded"


def row(reports: WorkerQueries, start: Start) -> dict[str, Any]:
    found = active(reports.database, start.job)
    assert found is not None
    return found


def last(reports: WorkerQueries, start: Start) -> dict[str, Any]:
    found = finished(reports.database, start.job)
    assert found is not None
    return found


def ask(reports: WorkerQueries, start: Start, kind: str = "cancel") -> None:
    """Ask as a submit does."""
    reports.database.execute(
        "update pgbeat.active_job set stop_request = %(kind)s where id = %(job)s", {"job": start.job, "kind": kind}
    )


# --- start


@pytest.mark.parametrize("before", ["pending", "sent", "retrying"])
def test_a_job_that_waits_is_started(reports: WorkerQueries, before: str) -> None:
    start = started(reports, state=before, marked_by="beat-a")
    found = row(reports, start)
    assert ("running", start.token, "worker-a", None) == tuple(
        found[name] for name in ("state", "token", "worker", "marked_by")
    )
    assert SILENCE - SECOND < found["patience"] <= SILENCE
    assert found["started_at"] == found["attempt_at"]


@pytest.mark.parametrize("columns", [{}, {"min_gap": HOUR}], ids=["plain", "spaced"])
def test_a_message_of_another_task_neither_starts_nor_ends_the_job_of_its_id(
    reports: WorkerQueries, columns: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    job = make_job(reports.database, periodic_task=str(uuid.uuid4()), **columns)
    forged = dataclasses.replace(start_of(job), task="app.another")

    assert StartResult.FOREIGN is start_job(reports, forged, SILENCE)
    assert f"'app.another' has the id of job {job}, whose task is 'app.probe'" in caplog.text
    assert reports.start_spaced(forged, SILENCE) is False
    assert not reports.end_unstarted(forged, "failed", "worker-a")
    assert set() == reports.end_unstarted_many([Unstarted(forged, "failed", "worker-a")])
    assert "sent" == state(reports.database, job)
    bury(reports.database, job)
    assert not reports.start_lost(forged, SILENCE)
    assert StartResult.STARTED is start_job(reports, dataclasses.replace(forged, task="app.probe"), SILENCE)


def test_a_second_copy_of_a_running_job_starts_nothing(reports: WorkerQueries) -> None:
    first = started(reports)
    assert not reports.start(start_of(first.job), SILENCE)
    assert first.token == row(reports, first)["token"]


def test_a_start_whose_answer_was_lost_may_ask_again(reports: WorkerQueries) -> None:
    start = started(reports)
    assert reports.start(start, SILENCE)


class LosesItsFirstAnswer(WorkerQueries):
    """Postgres hears the first start and commits it, and the connection breaks before its answer."""

    asked = 0

    def start(self, start: Start, dead_after: timedelta) -> bool:
        answer = super().start(start, dead_after)
        self.asked += 1
        if self.asked == 1:
            raise DatabaseUnavailable("the connection broke")
        return answer


def test_a_guard_whose_first_answer_was_lost_does_not_drop_its_own_job(database: Database) -> None:
    reports = LosesItsFirstAnswer(database)
    start = start_of(make_job(database, periodic_task=str(uuid.uuid4())))
    assert StartResult.STARTED is retry_until_deadline(lambda: start_job(reports, start, SILENCE))
    assert StartResult.DUPLICATE is start_job(reports, start_of(start.job), SILENCE)


def test_a_higher_attempt_starts_although_the_row_still_says_running(reports: WorkerQueries) -> None:
    first = started(reports)
    retry = start_of(first.job, attempt=1)
    assert reports.start(retry, SILENCE)
    found = row(reports, retry)
    assert (1, retry.token) == (found["attempt"], found["token"])
    assert found["attempt_at"] > found["started_at"]


def test_a_lower_attempt_never_starts(reports: WorkerQueries) -> None:
    first = started(reports)
    assert reports.retry(first, SECOND, "ValueError: x")
    assert not reports.start(start_of(first.job, attempt=0), SILENCE)
    assert "retrying" == row(reports, first)["state"]


@pytest.mark.parametrize("run", [0, 2])
def test_a_message_of_another_run_starts_nothing(reports: WorkerQueries, run: int) -> None:
    job = make_job(reports.database, run=1)
    assert not reports.start(start_of(job, run=run, attempt=5), SILENCE)


def test_a_final_job_does_not_start(reports: WorkerQueries) -> None:
    first = started(reports)
    reports.finish(first, "succeeded")
    assert not reports.start(start_of(first.job, attempt=3), SILENCE)
    assert not reports.start(first, SILENCE)


@pytest.mark.parametrize("columns", [{}, {"min_gap": HOUR}], ids=["plain", "spaced"])
@pytest.mark.parametrize("before", ["pending", "lost", "untracked"])
def test_a_job_that_is_not_tracked_runs_and_its_row_stays_as_it_is(
    reports: WorkerQueries, before: str, columns: dict[str, Any]
) -> None:
    """Of a message that does not say so: the worker may be faster than the confirm, or slower."""
    start = start_of(make_job(reports.database, state="pending", tracking="send", marked_by="beat-a", **columns))
    if before == "untracked":
        reports.database.run("confirm", beat="beat-a", jobs=[start.job], count=1, delays="{}")
    elif before == "lost":
        reports.database.execute("update pgbeat.active_job set state = 'sent'")
        bury(reports.database, start.job)

    assert StartResult.UNTRACKED == start_job(reports, start, SILENCE)
    assert [] == reports.heartbeat("worker-a", [start], SILENCE)
    assert before == state(reports.database, start.job)


def test_of_many_copies_at_once_one_starts(reports: WorkerQueries) -> None:
    databases = [Database(reports.database.url) for _ in range(5)]
    for _ in range(20):
        job = make_job(databases[0], periodic_task=str(uuid.uuid4()))
        barrier = threading.Barrier(len(databases))
        won: list[Start] = []

        def try_it(database: Database, job: uuid.UUID = job, barrier: Any = barrier, won: list[Start] = won) -> None:
            start = start_of(job)
            barrier.wait()
            if WorkerQueries(database).start(start, SILENCE):
                won.append(start)

        threads = [threading.Thread(target=try_it, args=(database,)) for database in databases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [active(databases[0], job)["token"]] == [start.token for start in won]  # type: ignore[index]
    for database in databases:
        database.close()


# --- start late


def lost(reports: WorkerQueries, **columns: Any) -> Start:
    job = make_job(reports.database, **columns)
    bury(reports.database, job)
    assert "lost" == state(reports.database, job)
    return start_of(job)


def test_a_job_lost_before_it_started_starts_when_its_message_turns_up(reports: WorkerQueries) -> None:
    start = lost(reports)
    assert reports.start_lost(start, SILENCE)
    found = row(reports, start)
    assert ("running", start.token, HOUR, True) == tuple(
        found[name] for name in ("state", "token", "pickup_deadline", "exclusive")
    )
    assert finished(reports.database, start.job) is None


def test_a_late_start_takes_the_place_of_the_job_that_waits(reports: WorkerQueries) -> None:
    start = lost(reports)
    waiting = make_job(reports.database)
    assert reports.start_lost(start, SILENCE)
    record = finished(reports.database, waiting)
    assert record is not None
    assert ("skipped", "superseded", start.job) == (record["state"], record["reason"], record["blocked_by"])
    assert not reports.start(start_of(waiting), SILENCE)


def test_a_late_start_gives_way_to_what_has_started_since(reports: WorkerQueries) -> None:
    start = lost(reports)
    started(reports)
    assert not reports.start_lost(start, SILENCE)
    assert "lost" == state(reports.database, start.job)


def test_a_late_start_gives_way_to_what_has_started_and_ended_since(reports: WorkerQueries) -> None:
    start = lost(reports)
    reports.finish(started(reports), "succeeded")
    assert not reports.start_lost(start, SILENCE)


def test_a_late_start_never_supersedes_a_manual_job(reports: WorkerQueries) -> None:
    start = lost(reports)
    manual = make_job(reports.database, origin="manual")
    assert not reports.start_lost(start, SILENCE)
    assert ("lost", "sent") == (state(reports.database, start.job), state(reports.database, manual))


def test_a_job_lost_while_it_ran_does_not_start_late(reports: WorkerQueries) -> None:
    start = started(reports)
    bury(reports.database, start.job)
    assert "lost" == state(reports.database, start.job)
    assert not reports.start_lost(start_of(start.job), SILENCE)


def test_a_late_start_that_meets_a_start_in_the_same_moment_loses_nothing(reports: WorkerQueries) -> None:
    """The lost job must not vanish: it is deleted and put elsewhere in one statement, or neither."""
    late = lost(reports)
    rival = make_job(reports.database)
    other = Database(reports.database.url)
    with other.engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        connection.exec_driver_sql(
            "update pgbeat.active_job set state = 'running', started_at = now() where id = %(id)s", {"id": rival}
        )
        assert not reports.start_lost(late, SILENCE)
    other.close()

    assert not reports.start_lost(late, SILENCE)
    assert ("lost", "running") == (state(reports.database, late.job), state(reports.database, rival))


def test_a_start_that_is_refused_because_the_job_is_asked_to_end_ends_it(reports: WorkerQueries) -> None:
    """It does not run, so its end would never be told; a failover that lost the commit of its start leaves it so."""
    start = start_of(make_job(reports.database))
    reports.database.execute("update pgbeat.active_job set stop_request = 'cancel'")

    assert StartResult.WITHDRAWN is start_job(reports, start, SILENCE)

    ended = finished(reports.database, start.job)
    assert ended is not None
    assert ("revoked", "asked to cancel before it ran") == (ended["state"], ended["error"])


# --- state


def test_the_state_of_a_job_comes_with_what_decides_and_is_none_if_unknown(reports: WorkerQueries) -> None:
    start = started(reports, run=2, attempt=1)
    assert JobState("running", 2, 1, "worker-a", final=False, task="app.probe") == reports.state_of(start.job)
    reports.finish(start, "succeeded")
    assert JobState("succeeded", 2, 1, "worker-a", final=True, task="app.probe") == reports.state_of(start.job)
    assert reports.state_of(uuid.uuid4()) is None


# --- finish, retry, requeue, lose: only the start that bears the token

ENDINGS: dict[str, Any] = {
    "finish": lambda reports, start: reports.finish(start, "succeeded"),
    "finish_many": finish_together,
    "retry": lambda reports, start: reports.retry(start, SECOND, "x"),
    "requeue": lambda reports, start: reports.requeue(start, "x"),
    "give_up_start": lambda reports, start: reports.give_up_start(start, "x"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_only_the_start_with_the_token_reports_its_end(reports: WorkerQueries, ending: str) -> None:
    start = started(reports)
    stranger = dataclasses.replace(start, token=uuid.uuid4())
    before = row(reports, start)
    assert not ENDINGS[ending](reports, stranger)
    after = row(reports, start)
    assert before["busy_until"] == after["busy_until"]
    assert ("running", start.token, None) == (after["state"], after["token"], after["error"])
    assert ENDINGS[ending](reports, start)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_earlier_run_has_nothing_more_to_say(reports: WorkerQueries, ending: str) -> None:
    start = started(reports)
    reports.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', run = 1, token = null, state = 'pending'"
    )
    assert not ENDINGS[ending](reports, start)
    assert "pending" == row(reports, start)["state"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_earlier_attempt_has_nothing_more_to_say(reports: WorkerQueries, ending: str) -> None:
    first = started(reports)
    second = start_of(first.job, attempt=1)
    assert reports.start(second, SILENCE)
    assert not ENDINGS[ending](reports, first)
    assert ("running", second.token) == (row(reports, second)["state"], row(reports, second)["token"])


def test_a_finished_job_leaves_the_way_free_and_keeps_what_it_was(reports: WorkerQueries) -> None:
    start = started(reports)
    assert reports.finish(start, "failed", "ValueError: no")
    record = last(reports, start)
    assert active(reports.database, start.job) is None
    assert ("failed", "ValueError: no", "worker-a", 0) == tuple(
        record[name] for name in ("state", "error", "worker", "attempt")
    )
    assert record["started_at"] <= record["finished_at"]
    make_job(reports.database)
    assert not reports.finish(start, "succeeded")


def test_a_start_that_a_failover_forgot_may_still_finish(reports: WorkerQueries) -> None:
    job = make_job(reports.database)
    assert reports.finish(start_of(job), "succeeded")
    assert "succeeded" == state(reports.database, job)


def test_many_jobs_finish_at_once_each_in_its_own_way(reports: WorkerQueries) -> None:
    starts = [started(reports, periodic_task=name) for name in ("well", "badly", "asked", "asked-and-well")]
    for start in starts[2:]:
        ask(reports, start)
    ends = [("succeeded", None), ("failed", "ValueError: no"), ("failed", "x"), ("succeeded", None)]
    finishes = [Finish(start, *end) for start, end in zip(starts, ends, strict=True)]
    assert set() == reports.finish_many(finishes)
    expected = [
        ("succeeded", None),
        ("failed", "ValueError: no"),
        ("revoked", "asked to cancel: x"),
        ("succeeded", None),
    ]
    records = [last(reports, start) for start in starts]
    assert expected == [(record["state"], record["error"]) for record in records]
    assert {("worker-a", 0)} == {(record["worker"], record["attempt"]) for record in records}
    assert not any(active(reports.database, start.job) for start in starts)
    assert set() == reports.finish_many(finishes)


def test_starts_that_a_failover_forgot_may_still_finish_together(reports: WorkerQueries) -> None:
    starts = [start_of(make_job(reports.database, periodic_task=name)) for name in ("a", "b")]
    assert set() == reports.finish_many([Finish(start, "succeeded") for start in starts])
    assert [("succeeded", "worker-a")] * 2 == [
        (last(reports, start)["state"], last(reports, start)["worker"]) for start in starts
    ]


def test_a_locked_row_keeps_no_other_from_finishing_and_is_returned(reports: WorkerQueries) -> None:
    held, free = (started(reports, periodic_task=name) for name in ("held", "free"))
    finishes = [Finish(held, "succeeded"), Finish(free, "succeeded")]
    with reports.database.engine.connect().execution_options(isolation_level="READ COMMITTED") as other:
        other.exec_driver_sql(f"select from pgbeat.active_job where id = '{held.job}' for no key update")
        assert {held.job} == reports.finish_many(finishes)
        assert ("running", "succeeded") == (state(reports.database, held.job), state(reports.database, free.job))
        other.rollback()
    assert set() == reports.finish_many(finishes)
    assert "succeeded" == state(reports.database, held.job)


def test_a_job_that_went_to_another_run_while_its_row_was_locked_is_not_finished_by_the_first(
    reports: WorkerQueries,
) -> None:
    start = started(reports)
    with reports.database.engine.connect().execution_options(isolation_level="READ COMMITTED") as other:
        other.exec_driver_sql(
            "update pgbeat.active_job set check_at = 'epoch', run = 1, token = null, state = 'pending'"
        )
        assert {start.job} == reports.finish_many([Finish(start, "succeeded")])
        other.commit()
    assert set() == reports.finish_many([Finish(start, "succeeded")])
    assert "pending" == state(reports.database, start.job)


def test_the_end_of_many_jobs_is_the_turn_of_all_that_wait_for_them(reports: WorkerQueries) -> None:
    starts = [started(reports, periodic_task=name) for name in ("a", "b")]
    waiting = [make_job(reports.database, periodic_task=name, state="buffered", exclusive=False) for name in ("a", "b")]
    assert set() == reports.finish_many([Finish(start, "succeeded") for start in starts])
    assert ["pending", "pending"] == [state(reports.database, job) for job in waiting]


def test_a_start_on_a_dead_connection_is_repeated_on_a_new_one(reports: WorkerQueries) -> None:
    job = make_job(reports.database)
    own = Database(reports.database.engine.url.render_as_string(hide_password=False))
    (row,) = own.execute("select pg_backend_pid() as pid")
    reports.database.execute("select pg_terminate_backend(%(pid)s)", {"pid": row.pid})
    there = "select from pg_stat_activity where pid = %(pid)s"
    eventually(lambda: not reports.database.execute(there, {"pid": row.pid}), 10, "its connection is gone")
    assert WorkerQueries(own).start(start_of(job), SILENCE)
    assert not WorkerQueries(own).start(start_of(job), SILENCE)
    own.close()


def test_a_start_that_postgres_refuses_is_an_error_as_ever(reports: WorkerQueries) -> None:
    with pytest.raises(DBAPIError):
        reports.start(start_of(make_job(reports.database)), timedelta.max)
    assert reports.start(start_of(make_job(reports.database, periodic_task="next")), SILENCE)


def test_a_retrying_job_waits_for_its_next_attempt(reports: WorkerQueries) -> None:
    first = started(reports)
    assert reports.retry(first, timedelta(minutes=10), "ValueError: no")
    found = row(reports, first)
    assert ("retrying", 1, None, "ValueError: no") == tuple(
        found[name] for name in ("state", "attempt", "token", "error")
    )
    assert timedelta(minutes=69) < found["patience"] <= timedelta(minutes=70)
    assert reports.start(start_of(first.job, attempt=1), SILENCE)


def test_a_requeued_job_starts_again_with_the_same_attempt(reports: WorkerQueries) -> None:
    first = started(reports)
    assert reports.requeue(first, "lost")
    assert "sent" == row(reports, first)["state"]
    assert reports.start(start_of(first.job), SILENCE)


def test_a_job_requeued_for_another_copy_is_found_by_recover(reports: WorkerQueries) -> None:
    first = started(reports)
    assert reports.requeue(first, "lost", resend=True)
    found = row(reports, first)
    assert ("pending", None) == (found["state"], found["marked_at"])


def test_a_job_that_starts_at_most_once_is_lost_with_its_process(reports: WorkerQueries) -> None:
    start = started(reports)
    assert reports.give_up_start(start, "WorkerLostError: signal 9")
    record = last(reports, start)
    assert ("lost", "WorkerLostError: signal 9") == (record["state"], record["error"])
    assert not reports.start_lost(start_of(start.job), SILENCE)


def test_a_job_that_may_run_again_is_left_to_its_silence(reports: WorkerQueries) -> None:
    start = started(reports, on_lost="rerun")
    before = row(reports, start)
    assert not reports.give_up_start(start, "WorkerLostError: signal 9")
    after = row(reports, start)
    assert ("running", "WorkerLostError: signal 9") == (after["state"], after["error"])
    assert before["busy_until"] == after["busy_until"]


# --- what a start is asked


@pytest.mark.parametrize("kind", ["cancel", "terminate"])
def test_a_stop_request_is_read_by_the_running_start_and_by_its_worker(reports: WorkerQueries, kind: str) -> None:
    start, other = started(reports), started(reports, periodic_task="other")
    assert reports.stop_request_of(start) is None
    assert [] == reports.stop_requests("worker-a")
    ask(reports, start, kind)
    assert StopRequest(start.token, kind) == reports.stop_request_of(start)  # type: ignore[arg-type]
    assert [StopRequest(start.token, kind)] == reports.stop_requests("worker-a")  # type: ignore[arg-type]
    assert [] == reports.stop_requests("worker-b")
    assert reports.stop_request_of(other) is None


def test_an_ask_is_for_one_start_and_not_for_an_earlier_one(reports: WorkerQueries) -> None:
    first = started(reports)
    second = start_of(first.job, attempt=1)
    reports.start(second, SILENCE)
    ask(reports, second)
    assert reports.stop_request_of(first) is None
    assert reports.stop_request_of(second) is not None


def test_a_stop_request_survives_heartbeats(reports: WorkerQueries) -> None:
    start = started(reports)
    ask(reports, start)
    assert [start.job] == reports.heartbeat("worker-a", [start], SILENCE)
    assert "cancel" == row(reports, start)["stop_request"]


ASKED_ENDINGS: dict[str, Any] = {
    "finish": lambda reports, start: reports.finish(start, "failed", "Limit"),
    "retry": lambda reports, start: reports.retry(start, SECOND, "Limit"),
    "requeue": lambda reports, start: reports.requeue(start, "Limit", resend=True),
}


@pytest.mark.parametrize("ending", ASKED_ENDINGS)
@pytest.mark.parametrize("kind", ["cancel", "terminate"])
def test_a_job_that_was_asked_to_end_and_did_not_succeed_is_revoked(
    reports: WorkerQueries, ending: str, kind: str
) -> None:
    start = started(reports, on_lost="rerun")
    ask(reports, start, kind)
    assert ASKED_ENDINGS[ending](reports, start)
    record = last(reports, start)
    assert ("revoked", f"asked to {kind}: Limit", 0, "worker-a") == tuple(
        record[name] for name in ("state", "error", "attempt", "worker")
    )
    assert active(reports.database, start.job) is None
    assert not reports.start(start_of(start.job, attempt=1), SILENCE)


def test_a_job_that_was_asked_to_end_and_succeeded_all_the_same_has_succeeded(reports: WorkerQueries) -> None:
    start = started(reports)
    ask(reports, start)
    reports.finish(start, "succeeded")
    assert ("succeeded", None) == (last(reports, start)["state"], last(reports, start)["error"])


def test_a_job_that_was_asked_to_end_is_lost_with_its_process_and_never_runs_again(reports: WorkerQueries) -> None:
    start = started(reports, on_lost="rerun")
    ask(reports, start)
    assert reports.give_up_start(start, "WorkerLostError: signal 9")
    assert ("lost", "asked to cancel: WorkerLostError: signal 9") == (
        last(reports, start)["state"],
        last(reports, start)["error"],
    )


def test_a_job_that_was_asked_to_end_starts_no_further_attempt(reports: WorkerQueries) -> None:
    """Celery publishes the message of a retry before anybody can say that there is one."""
    first = started(reports)
    ask(reports, first)
    assert not reports.start(start_of(first.job, attempt=1), SILENCE)
    assert reports.start(first, SILENCE), "but who started it may ask again"
    assert "cancel" == row(reports, first)["stop_request"]


def test_an_ask_that_comes_while_a_retry_is_reported_is_not_forgotten(reports: WorkerQueries) -> None:
    start = started(reports)
    other = Database(reports.database.url)
    answers: list[bool] = []
    transactional = other.engine.execution_options(isolation_level="READ COMMITTED")
    with transactional.begin() as connection:
        connection.exec_driver_sql("update pgbeat.active_job set stop_request = 'cancel'")
        thread = threading.Thread(target=lambda: answers.append(reports.retry(start, SECOND, "Limit")))
        thread.start()
        thread.join(0.5)
        assert thread.is_alive(), "it should wait for the ask"
    thread.join(10)
    other.close()
    assert [True] == answers
    assert "revoked" == last(reports, start)["state"]


# --- revoke_failed


def test_revoked_overrules_failed(reports: WorkerQueries) -> None:
    start = started(reports)
    reports.finish(start, "failed", "ValueError: while it unwound")
    assert reports.revoke_failed(start, "terminated")
    record = last(reports, start)
    assert ("revoked", "terminated") == (record["state"], record["error"])


def test_revoked_does_not_overrule_succeeded(reports: WorkerQueries) -> None:
    start = started(reports)
    reports.finish(start, "succeeded")
    assert not reports.revoke_failed(start, "terminated")
    assert "succeeded" == last(reports, start)["state"]


def test_revoked_does_not_overrule_another_attempt(reports: WorkerQueries) -> None:
    start = started(reports, attempt=2)
    reports.finish(start, "failed", "x")
    assert not reports.revoke_failed(dataclasses.replace(start, attempt=1), "terminated")


# --- end unstarted


@pytest.mark.parametrize("before", ["pending", "sent", "retrying"])
@pytest.mark.parametrize("after", ["revoked", "expired", "failed"])
def test_a_message_that_was_dropped_ends_a_job_that_waits(reports: WorkerQueries, before: str, after: str) -> None:
    job = make_job(reports.database, state=before)
    assert reports.end_unstarted(MessageCopy(job, 0, 0), after, "worker-a", error="x")
    record = finished(reports.database, job)
    assert record is not None
    assert (after, "worker-a", "x", None) == tuple(record[name] for name in ("state", "worker", "error", "reason"))


def test_a_task_that_is_not_allowed_is_recorded_as_skipped(reports: WorkerQueries) -> None:
    job = make_job(reports.database)
    assert reports.end_unstarted(MessageCopy(job, 0, 0), "skipped", "worker-a", reason="not_allowed")
    record = finished(reports.database, job)
    assert record is not None
    assert ("skipped", "not_allowed", None) == (record["state"], record["reason"], record["started_at"])


def test_a_message_that_was_dropped_does_not_end_a_job_that_runs(reports: WorkerQueries) -> None:
    start = started(reports)
    assert not reports.end_unstarted(MessageCopy(start.job, 0, 0), "revoked", "worker-b")
    assert "running" == row(reports, start)["state"]


def test_a_message_of_an_earlier_attempt_or_run_ends_nothing(reports: WorkerQueries) -> None:
    job = make_job(reports.database, run=1, attempt=1)
    assert not reports.end_unstarted(MessageCopy(job, 1, 0), "expired", "worker-a")
    assert not reports.end_unstarted(MessageCopy(job, 0, 1), "expired", "worker-a")
    assert reports.end_unstarted(MessageCopy(job, 1, 1), "expired", "worker-a")


def dropped(reports: WorkerQueries, job: uuid.UUID, worker: str = "worker-a") -> bool:
    """End a job among others whose message was dropped; tell whether it is final."""
    ends = [
        Unstarted(MessageCopy(job, 0, 0), "expired", worker),
        Unstarted(MessageCopy(uuid.uuid4(), 0, 0), "failed", worker),
    ]
    assert set() == reports.end_unstarted_many(ends)
    return state(reports.database, job) == "expired"


def test_many_messages_that_were_dropped_end_their_jobs_each_in_its_own_way(reports: WorkerQueries) -> None:
    befores = ("pending", "sent", "retrying")
    jobs = [make_job(reports.database, periodic_task=before, state=before) for before in befores]
    words = [("expired", None, None), ("failed", None, "NotRegistered: x"), ("skipped", "not_allowed", "y")]
    ends = [
        Unstarted(MessageCopy(job, 0, 0), state, "worker-a", reason, error)
        for job, (state, reason, error) in zip(jobs, words, strict=True)
    ]
    assert set() == reports.end_unstarted_many(ends)
    records = [finished(reports.database, job) or {} for job in jobs]
    assert words == [(record["state"], record["reason"], record["error"]) for record in records]
    assert {("worker-a", 0, None)} == {(row["worker"], row["attempt"], row["started_at"]) for row in records}
    assert not any(active(reports.database, job) for job in jobs)
    assert set() == reports.end_unstarted_many(ends)


def test_two_dropped_copies_of_one_message_end_their_job_once(reports: WorkerQueries) -> None:
    job = make_job(reports.database)
    end = Unstarted(MessageCopy(job, 0, 0), "revoked", "worker-a")
    assert set() == reports.end_unstarted_many([end, end])
    assert "revoked" == state(reports.database, job)


def test_many_dropped_messages_do_not_end_a_job_that_runs_or_waits_in_another_run_or_attempt(
    reports: WorkerQueries,
) -> None:
    running = started(reports, periodic_task="running")
    later_run = make_job(reports.database, periodic_task="run", run=1)
    later_attempt = make_job(reports.database, periodic_task="attempt", attempt=1)
    for job in (running.job, later_run, later_attempt):
        assert not dropped(reports, job)


@pytest.mark.parametrize("many", [False, True])
def test_a_dropped_message_ends_its_job_although_a_heartbeat_took_it_for_one_that_runs(
    reports: WorkerQueries, many: bool
) -> None:
    start = Start(make_job(reports.database), 0, 0, uuid.uuid4(), "worker-a")
    other = Start(start.job, 0, 0, uuid.uuid4(), "worker-b")
    assert [start.job] == reports.heartbeat("worker-a", [start], SILENCE)

    for copy, ends in ((MessageCopy(start.job, 0, 0), False), (other, False), (start, True)):
        if many:
            reports.end_unstarted_many([Unstarted(copy, "skipped", "worker-a", "not_allowed", "no")])
        else:
            reports.end_unstarted(copy, "skipped", "worker-a", reason="not_allowed", error="no")
        assert ("skipped" if ends else "running") == state(reports.database, start.job)


def test_a_locked_row_keeps_no_other_dropped_message_from_ending_its_job_and_is_returned(
    reports: WorkerQueries,
) -> None:
    held, free = (make_job(reports.database, periodic_task=name) for name in ("held", "free"))
    ends = [Unstarted(MessageCopy(job, 0, 0), "expired", "worker-a") for job in (held, free)]
    with reports.database.engine.connect().execution_options(isolation_level="READ COMMITTED") as other:
        other.exec_driver_sql(f"select from pgbeat.active_job where id = '{held}' for no key update")
        assert {held} == reports.end_unstarted_many(ends)
        assert ("sent", "expired") == (state(reports.database, held), state(reports.database, free))
        other.rollback()
    assert set() == reports.end_unstarted_many(ends)
    assert "expired" == state(reports.database, held)


def test_a_dropped_message_gives_the_turn_to_the_job_that_waits_behind_its_job(reports: WorkerQueries) -> None:
    first = make_job(reports.database)
    waiting = make_job(reports.database, state="buffered", exclusive=False)
    assert dropped(reports, first)
    assert "pending" == state(reports.database, waiting)


# --- heartbeat


def age(reports: WorkerQueries, seconds: int = 20) -> None:
    reports.database.execute(
        f"update pgbeat.active_job set check_at = 'epoch', busy_until = busy_until - interval '{seconds} seconds'"
    )


def test_a_heartbeat_renews_the_starts_that_it_names_and_no_others(reports: WorkerQueries) -> None:
    named, other = started(reports), started(reports, periodic_task="other")
    age(reports)
    assert [named.job] == reports.heartbeat("worker-a", [named], SILENCE)
    assert row(reports, named)["patience"] > SILENCE - SECOND
    assert row(reports, other)["patience"] < SILENCE / 2


def test_a_heartbeat_with_another_token_renews_nothing(reports: WorkerQueries) -> None:
    start = started(reports)
    age(reports)
    assert [] == reports.heartbeat("worker-a", [start_of(start.job)], SILENCE)
    assert row(reports, start)["patience"] < SILENCE / 2


def test_a_heartbeat_does_not_wake_a_job_that_waits_for_its_retry_or_was_requeued(reports: WorkerQueries) -> None:
    retried, requeued = started(reports), started(reports, periodic_task="other")
    reports.retry(retried, SECOND, "x")
    reports.requeue(requeued, "x")
    assert [] == reports.heartbeat("worker-a", [retried, requeued], SILENCE)


def test_a_heartbeat_restores_a_start_that_a_failover_forgot(reports: WorkerQueries) -> None:
    start = start_of(make_job(reports.database))
    assert [start.job] == reports.heartbeat("worker-a", [start], SILENCE)
    assert ("running", start.token) == (row(reports, start)["state"], row(reports, start)["token"])
    assert not reports.start(start_of(start.job), SILENCE)


def test_a_heartbeat_restores_an_attempt_that_a_failover_set_back_to_retrying(reports: WorkerQueries) -> None:
    """Else a retry that runs for longer than the pickup deadline would be sent again, and run twice."""
    first = started(reports, max_run_time=timedelta(seconds=10))
    assert reports.retry(first, SECOND, "x")
    reports.database.execute("update pgbeat.active_job set attempt_at = attempt_at - interval '1 hour'")
    second = start_of(first.job, attempt=1)
    assert [second.job] == reports.heartbeat("worker-a", [second], SILENCE)
    found = row(reports, second)
    assert ("running", second.token, 1) == (found["state"], found["token"], found["attempt"])
    assert found["patience"] > SILENCE - SECOND, "the first attempt began an hour ago, this one now"
    assert not reports.start(start_of(first.job, attempt=1), SILENCE)
    assert [second.job] == reports.heartbeat("worker-a", [second], SILENCE)
    assert reports.finish(second, "succeeded")


def test_heartbeats_end_with_the_hard_limit(reports: WorkerQueries) -> None:
    start = started(reports, max_run_time=timedelta(seconds=10))
    reports.database.execute("update pgbeat.active_job set attempt_at = attempt_at - interval '45 seconds'")
    assert [start.job] == reports.heartbeat("worker-a", [start], SILENCE)
    assert row(reports, start)["patience"] < 6 * SECOND  # 10 s soft, 20 s hard, 30 s of grace, 45 s gone


# --- nodes


def test_a_worker_announces_itself_and_leaves(reports: WorkerQueries) -> None:
    node = NodeId.mine()
    reports.announce_node(node)
    reports.database.execute("update pgbeat.node set last_seen_at = last_seen_at - interval '1 minute'")
    reports.announce_node(node)
    (found,) = reports.database.execute("select *, pgbeat.now() - last_seen_at as silence from pgbeat.node")
    assert (str(node), "worker", node.pid, True) == (found.id, found.role, found.pid, found.tracking)
    assert found.silence < timedelta(seconds=5)
    reports.remove_worker(node)
    assert [] == reports.database.execute("select * from pgbeat.node")


def test_a_worker_that_leaves_removes_no_other_node_and_no_declaration(reports: WorkerQueries) -> None:
    node = NodeId.mine()
    reports.announce_node(node)
    reports.database.execute(
        "insert into pgbeat.node (id, role, hostname, pid, version, started_at, last_seen_at, tracking) "
        "select 'another', role, hostname, pid, version, started_at, last_seen_at, tracking from pgbeat.node"
    )
    reports.database.execute(
        "insert into pgbeat.declaration (app, hash, first_seen_at, last_seen_at, listening_since, dead_after) "
        "select 'code:shop', 'x', hour, hour, hour, '30 s' from (select now() - interval '1 hour') as past (hour) "
        "on conflict do nothing"
    )

    reports.remove_worker(node)

    assert [("another",)] == reports.database.execute("select id from pgbeat.node")
    assert [("code:shop",)] == reports.database.execute("select app from pgbeat.declaration")


# --- plans

OF_ONE_JOB = [
    "state_of",
    "finish",
    "retry",
    "requeue",
    "give_up_start",
    "heartbeat",
    "end_unstarted",
    "stop_request_of",
]


def test_what_is_said_of_a_job_finds_it_by_its_id_among_many(reports: WorkerQueries) -> None:
    reports.database.execute(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until) select gen_random_uuid(), 'row-' || n, now(), 'schedule', "
        "'sent', true, 'app.probe', '{}', 'give_up', 'full', '1 hour', now() from generate_series(1, 20000) n"
    )
    reports.database.execute("analyze pgbeat.active_job")
    start = start_of(make_job(reports.database))
    one: dict[str, Any] = {"job": start.job, "run": 0, "attempt": 0, "token": start.token, "worker": "w", "error": "x"}
    one |= {"task": "app.probe", "state": "failed", "reason": None, "delay": 1.0, "resend": False, "dead_after": 30.0}
    one |= {"jobs": [start.job], "runs": [0], "attempts": [0], "tokens": [start.token]}
    for name in OF_ONE_JOB:
        wanted = {parameter: one[parameter] for parameter in parameters(name)}
        rows = reports.database.execute(f"explain {statement(name, 'pgbeat')}", wanted)
        plan = "\n".join(row[0] for row in rows)
        assert "active_job_pkey" in plan, f"{name}: {plan}"
        assert "Seq Scan on active_job" not in plan, f"{name}: {plan}"


def test_a_start_whose_plan_was_kept_since_the_table_was_empty_finds_its_job_by_its_id(
    migrated_database: str,
) -> None:
    session = Session(migrated_database)
    start = "select pgbeat.start('00000000-0000-0000-0000-000000000001', 0, 0, gen_random_uuid(), 'w', 30, 'app.probe')"
    session.rows("alter table pgbeat.active_job set (autovacuum_enabled = false)")
    for _ in range(10):  # after some the plan is one for all values
        session.rows(start)
    session.rows(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until) select lpad(n::text, 32, '0')::uuid, 'row-' || n, now(), "
        "'schedule', 'sent', true, 'app.probe', '{}', 'give_up', 'full', '1 hour', now() "
        "from generate_series(1, 999) n"
    )

    assert {"as a whole": {}, "rows": 1} == read_by(session, start)


def test_the_stop_requests_of_a_worker_are_found_by_their_index_among_many_that_run(reports: WorkerQueries) -> None:
    reports.database.execute(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until, worker, stop_request) select gen_random_uuid(), 'row-' || n, "
        "now(), 'schedule', 'running', true, 'app.probe', '{}', 'give_up', 'full', '1 hour', now(), "
        "'worker-' || mod(n, 10), case when mod(n, 1000) = 0 then 'cancel' end from generate_series(1, 20000) n"
    )
    reports.database.execute("analyze pgbeat.active_job")
    rows = reports.database.execute(f"explain {statement('stop_requests', 'pgbeat')}", {"worker": "worker-0"})
    plan = "\n".join(row[0] for row in rows)
    assert "active_job_to_stop" in plan, plan
    assert 20 == len(reports.stop_requests("worker-0"))


# --- the file and the method


@pytest.mark.parametrize(
    "name", [name for name, _ in inspect.getmembers(WorkerQueries, inspect.isfunction) if not name.startswith("_")]
)
def test_each_method_says_what_its_statement_says(name: str) -> None:
    text = files()[name].read_text(encoding="utf-8")
    promised = text.splitlines()[0].removeprefix("-- ")
    assert promised == (inspect.getdoc(getattr(WorkerQueries, name)) or "").splitlines()[0]
