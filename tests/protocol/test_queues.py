"""Groups as queues: in order, one after another, at a rate, paused by a failure, waiting for each other, finished."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg2
import pytest

from celery_pgbeat.api.groups import read_group
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.clock import Clock
from tests.harness.jobs import bury, make_job
from tests.harness.session import Session
from tests.harness.ticks import beat, decided, insert, submit
from tests.harness.transactions import Attempt, Transaction, at_once

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)


@pytest.fixture
def clock(migrated_database: str) -> Clock:
    clock = Clock(migrated_database)
    clock.stand_at(NOON)
    return clock


@pytest.fixture
def store(migrated_database: str, clock: Clock) -> BeatQueries:
    return beat(migrated_database)


def define(session: Session, name: str = "g", **settings: Any) -> None:
    arguments = "".join(f", {column} => %s" for column in settings)
    session.rows(f"select pgbeat.define_group(%s{arguments})", name, *settings.values())


def due(store: BeatQueries, name: str, after: float = 0, group: str = "g", **columns: Any) -> None:
    """Insert a row that is due so many seconds after noon."""
    insert(store, name, group_name=group, next_run_at=NOON + after * SECOND, **columns)


def tick(store: BeatQueries) -> None:
    submit(store, store.mark(100))


def states(store: BeatQueries) -> dict[str, str]:
    rows = store.database.execute("select periodic_task, state from pgbeat.active_job order by scheduled_for, id")
    return {row.periodic_task: row.state for row in rows}


def under_way(store: BeatQueries) -> list[str]:
    return [name for name, state in states(store).items() if state != "buffered"]


def job_of(store: BeatQueries, name: str) -> uuid.UUID:
    (row,) = store.database.execute("select id from pgbeat.active_job where periodic_task = %(name)s", {"name": name})
    found: uuid.UUID = row.id
    return found


def end(store: BeatQueries, name: str, state: str = "succeeded") -> None:
    """End a job as a worker does that has no more to report than the end."""
    statement = (
        "with deleted as (delete from pgbeat.active_job as job where id = %(job)s returning job) "
        "insert into pgbeat.finished_job select final.* from deleted "
        "cross join lateral pgbeat.archived(job, %(state)s, error => 'ValueError: no file') as final"
    )
    store.database.execute(statement, {"job": job_of(store, name), "state": state})


def said(session: Session, sql: str, *values: Any) -> str:
    return str(session.refusal(sql, *values))


def explained(session: Session, name: str) -> str:
    return str(session.value("select pgbeat.explain(%s)", name))


def group(session: Session, name: str = "g") -> dict[str, Any]:
    (row,) = session.rows("select * from pgbeat.task_group where name = %s", name)
    return row


# In order.


def test_an_ordered_group_gives_one_turn_at_a_time_in_the_scheduled_order(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True)
    for place, name in enumerate(["c", "a", "b"]):
        due(store, name, place)
    clock.advance(5 * SECOND)
    tick(store)

    for name in ("c", "a", "b"):
        assert store.look().slots_to_grant
        assert 1 == store.grant_slots(10)
        assert [name] == under_way(store)
        assert 0 == store.grant_slots(10)
        assert not store.look().slots_to_grant
        end(store, name)
    assert {} == states(store)


@pytest.mark.parametrize("state", ["pending", "sent", "running", "retrying", "error"])
def test_the_next_one_waits_until_the_one_before_is_final(store: BeatQueries, session: Session, state: str) -> None:
    define(session, ordered=True)
    make_job(store.database, periodic_task="a", state=state, group_name="g", slot=1)
    due(store, "b")
    tick(store)

    assert 0 == store.grant_slots(10)
    store.database.execute("delete from pgbeat.active_job where periodic_task = 'a'")
    assert 1 == store.grant_slots(10)


def test_a_job_does_not_pass_one_that_is_due_before_and_not_decided_yet(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True)
    due(store, "first", 0)
    due(store, "second", 1)
    clock.advance(2 * SECOND)
    rows = {row.name: row for row in store.mark(10)}
    store.submit([decided(rows["second"])], "UTC", True, True)

    assert 0 == store.grant_slots(10)
    assert not store.look().slots_to_grant
    assert "its group 'g', which is ordered, and 'first' is due before" in explained(session, "second")

    store.submit([decided(rows["first"])], "UTC", True, True)
    assert 1 == store.grant_slots(10)
    assert ["first"] == under_way(store)


def test_what_is_due_later_holds_nobody(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, ordered=True)
    due(store, "next year", 365 * 86400)
    due(store, "paused", -60, enabled=False)
    due(store, "of another group", -60, group="h")
    due(store, "now")
    rows = {row.name: row for row in store.mark(10)}
    store.submit([decided(rows["now"])], "UTC", True, True)

    assert 1 == store.grant_slots(10)
    assert ["now"] == under_way(store)


def test_a_deferred_occurrence_comes_by_its_own_instant_once_it_is_due(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True)
    make_job(store.database, periodic_task="busy", group_name="g", slot=1)
    due(store, "later", 2)
    due(store, "spread", 3)
    clock.advance(4 * SECOND)
    rows = {row.name: row for row in store.mark(10)}
    store.submit([decided(rows["later"])], "UTC", True, True)
    store.database.execute(
        "update pgbeat.active_job set scheduled_for = %(at)s where periodic_task = 'busy'", {"at": NOON}
    )
    answers = decided(rows["spread"])
    store.submit([answers], "UTC", True, True)
    store.database.execute(
        "update pgbeat.active_job set scheduled_for = %(at)s where periodic_task = 'spread'", {"at": NOON + SECOND}
    )

    end(store, "busy")
    assert 1 == store.grant_slots(10)
    assert ["spread"] == under_way(store)


def test_no_job_passes_the_first_one_while_a_transaction_holds_it(
    store: BeatQueries, session: Session, clock: Clock, migrated_database: str
) -> None:
    define(session, ordered=True)
    due(store, "first", 0)
    due(store, "second", 1)
    clock.advance(2 * SECOND)
    tick(store)
    somebody = Transaction(migrated_database)
    somebody.execute("select from pgbeat.active_job where periodic_task = 'first' for update")

    assert 0 == store.grant_slots(10)
    somebody.rollback()
    assert 1 == store.grant_slots(10)
    assert ["first"] == under_way(store)


def test_a_lost_job_of_an_ordered_group_does_not_start_after_all(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    define(session, ordered=True)
    job = make_job(store.database, periodic_task="a", group_name="g", slot=1, tracking="full")
    bury(store.database, job)
    reports = WorkerQueries(store.database)
    start = Start(job, 0, 0, uuid.uuid4(), "worker")
    assert not reports.start_lost(start, 30 * SECOND)


def test_ordered_allows_no_other_limit(session: Session) -> None:
    with pytest.raises(Exception, match="max_active is 3, but an ordered group has one job at a time"):
        define(session, ordered=True, max_active=3)


def test_jobs_that_are_triggered_together_run_in_the_order_of_the_call(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True)
    insert(store, "a", schedule=None, group_name="g", overlap="allow")
    jobs = json.dumps([{"name": "a", "args": [number]} for number in range(20)])
    ids = [row["job"] for row in session.rows("select job from pgbeat.trigger_many(%s::jsonb)", jobs)]
    clock.advance(SECOND)

    for expected in ids:
        assert 1 == store.grant_slots(10)
        (given,) = session.rows("select id from pgbeat.active_job where state = 'pending'")
        assert expected == given["id"]
        session.rows("delete from pgbeat.active_job where id = %s", expected)


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_task_for_people_takes_its_turn_as_any_other(
    store: BeatQueries, session: Session, clock: Clock, outcome: str
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "sign", 0, kind="human", task=None, due_in="1 hour")
    due(store, "publish", 1)
    clock.advance(2 * SECOND)
    tick(store)
    assert 1 == store.grant_slots(10)
    assert {"sign": "created", "publish": "buffered"} == states(store)

    session.rows("select pgbeat.pick_up(%s, 'ann')", str(job_of(store, "sign")))
    assert 0 == store.grant_slots(10)
    session.rows("select pgbeat.finish(%s, %s, 'a note')", str(job_of(store, "sign")), outcome)

    assert (1 if outcome == "succeeded" else 0) == store.grant_slots(10)
    assert ([] if outcome == "succeeded" else ["g"]) == [name for name, _ in store.pause_failed_groups()]


def test_a_task_for_people_that_failed_is_retried_in_its_place(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "sign", 0, kind="human", task=None)
    due(store, "publish", 1)
    clock.advance(2 * SECOND)
    tick(store)
    store.grant_slots(10)
    session.rows("select pgbeat.pick_up(%s, 'ann')", str(job_of(store, "sign")))
    session.rows("select pgbeat.finish(%s, 'failed', 'not yet')", str(job_of(store, "sign")))

    session.rows("select pgbeat.resume_group('g', retry => true)")

    assert 1 == store.grant_slots(10)
    assert {"sign": "created", "publish": "buffered"} == states(store)
    (work,) = session.rows("select scheduled_for from pgbeat.my_work('bob')")
    assert NOON == work["scheduled_for"]


# Paused by a failure.


@pytest.mark.parametrize("state", ["failed", "lost"])
def test_a_failure_stops_the_group_before_the_next_turn_and_a_beat_pauses_it(
    store: BeatQueries, session: Session, clock: Clock, state: str
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    due(store, "b", 1)
    clock.advance(2 * SECOND)
    tick(store)
    store.grant_slots(10)
    job = job_of(store, "a")

    assert session.notified_by(lambda: end(store, "a", state))

    assert 0 == store.grant_slots(10)
    assert not store.look().slots_to_grant
    assert store.look().failing
    assert [("g", f"job {job} of 'a' failed at 2026-12-07 12:00:02Z")] == store.pause_failed_groups()
    assert not store.look().failing
    found = group(session)
    assert ("paused", True) == (found["state"], found["paused"])
    assert 0 == store.grant_slots(10)
    assert {"b": "buffered"} == states(store)


def test_resuming_goes_on_with_the_next_one(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    due(store, "b", 1)
    clock.advance(2 * SECOND)
    tick(store)
    store.grant_slots(10)
    end(store, "a", "failed")
    store.pause_failed_groups()

    session.rows("select pgbeat.resume_group('g')")

    assert "active" == group(session)["state"]
    assert 1 == store.grant_slots(10)
    assert ["b"] == under_way(store)


@pytest.mark.parametrize("paused_by_a_beat", [True, False])
def test_resuming_with_retry_runs_the_failed_one_first(
    store: BeatQueries, session: Session, clock: Clock, paused_by_a_beat: bool
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    due(store, "b", 1)
    clock.advance(2 * SECOND)
    tick(store)
    store.grant_slots(10)
    failed = job_of(store, "a")
    end(store, "a", "failed")
    if paused_by_a_beat:
        store.pause_failed_groups()

    session.rows("select pgbeat.resume_group('g', retry => true)")

    assert 1 == store.grant_slots(10)
    assert ["a"] == under_way(store)
    (job,) = session.rows("select id, scheduled_for, origin from pgbeat.active_job where periodic_task = 'a'")
    assert (NOON, "manual") == (job["scheduled_for"], job["origin"])
    assert failed != job["id"]
    assert [] == session.rows("select * from pgbeat.group_failure")
    assert not store.look().failing


def test_of_one_instant_the_retry_comes_first_and_then_the_names_decide(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    for name in ("c", "b", "e", "d"):
        due(store, name, 0)
    tick(store)
    store.grant_slots(10)
    assert ["b"] == under_way(store)
    end(store, "b", "failed")

    session.rows("select pgbeat.resume_group('g', retry => true)")

    for name in ("b", "c", "d", "e"):
        assert 1 == store.grant_slots(10)
        assert [name] == under_way(store)
        end(store, name)


def test_the_retry_comes_before_what_waits_of_its_own_row(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    tick(store)
    store.grant_slots(10)
    end(store, "a", "failed")
    session.rows("update pgbeat.periodic_task set next_run_at = %s where name = 'a'", NOON + SECOND)
    clock.advance(2 * SECOND)
    tick(store)
    assert {"a": "buffered"} == states(store)

    session.rows("select pgbeat.resume_group('g', true)")

    assert 1 == store.grant_slots(10)
    rows = session.rows("select origin, state from pgbeat.active_job order by scheduled_for")
    assert [("manual", "pending"), ("schedule", "buffered")] == [(row["origin"], row["state"]) for row in rows]


def test_what_cannot_be_retried_leaves_the_group_paused(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, ordered=True, pause_on_failure=True)
    assert "No failed job has paused the group 'g'" in said(session, "select pgbeat.resume_group('g', true)")
    due(store, "a", 0)
    tick(store)
    store.grant_slots(10)
    end(store, "a", "failed")
    store.pause_failed_groups()
    session.rows("delete from pgbeat.periodic_task where name = 'a'")
    due(store, "b", 0)

    assert "'a'" in said(session, "select pgbeat.resume_group('g', true)")
    assert "paused" == group(session)["state"]


def test_a_job_that_was_retried_by_itself_is_not_retried_with_the_group(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    tick(store)
    store.grant_slots(10)
    failed = job_of(store, "a")
    end(store, "a", "failed")
    store.pause_failed_groups()

    session.rows("select pgbeat.retry_job(%s)", str(failed))
    assert "there is none to retry" in said(session, "select pgbeat.resume_group('g', true)")
    session.rows("select pgbeat.resume_group('g')")

    assert 1 == store.grant_slots(10)
    assert ["a"] == under_way(store)


@pytest.mark.parametrize("state", ["succeeded", "revoked", "expired", "untracked"])
def test_no_other_end_pauses_the_group(store: BeatQueries, session: Session, state: str) -> None:
    define(session, max_active=3, pause_on_failure=True)
    due(store, "a", 0)
    tick(store)
    store.grant_slots(10)

    end(store, "a", state)

    assert [] == session.rows("select * from pgbeat.group_failure")


def test_a_job_that_a_person_gave_up_pauses_nothing(store: BeatQueries, session: Session) -> None:
    define(session, ordered=True, pause_on_failure=True)
    job = make_job(store.database, periodic_task="a", state="error", group_name="g", slot=1, on_error="ask")

    session.rows("select pgbeat.fail_job(%s)", str(job))

    assert [] == session.rows("select * from pgbeat.group_failure")


def test_turning_pause_on_failure_off_forgets_the_failures(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    due(store, "b", 1)
    clock.advance(2 * SECOND)
    tick(store)
    store.grant_slots(10)
    end(store, "a", "failed")

    session.rows("update pgbeat.task_group set pause_on_failure = false")

    assert not store.look().failing
    assert [] == store.pause_failed_groups()
    assert 1 == store.grant_slots(10)


def test_a_failure_in_a_group_that_is_deleted_at_the_same_moment_is_forgotten_by_the_next_look(
    store: BeatQueries, session: Session
) -> None:
    session.rows(
        "insert into pgbeat.group_failure (group_name, job, periodic_task, scheduled_for) "
        "values ('gone', gen_random_uuid(), 'a', pgbeat.now())"
    )
    assert store.look().failing

    assert [] == store.pause_failed_groups()

    assert [] == session.rows("select * from pgbeat.group_failure")
    assert not store.look().failing


def test_a_failure_does_not_wait_for_somebody_who_edits_the_group(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    tick(store)
    store.grant_slots(10)
    author = Transaction(migrated_database)
    author.execute("update pgbeat.task_group set pause_reason = null where name = 'g'")

    session.rows("set lock_timeout = '2s'")
    end(store, "a", "failed")

    assert [] == store.pause_failed_groups()
    assert store.look().failing
    author.rollback()
    assert ["g"] == [name for name, _ in store.pause_failed_groups()]


def test_a_beat_that_pauses_a_group_waits_for_nobody_who_edits_a_row_of_it(
    store: BeatQueries, session: Session, clock: Clock, migrated_database: str
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    due(store, "b", 3600)
    due(store, "c", 3600)
    tick(store)
    store.grant_slots(10)
    end(store, "a", "failed")
    author = Transaction(migrated_database)
    author.execute("update pgbeat.periodic_task set queue = 'x' where name = 'b'")

    assert ["g"] == [name for name, _ in at_once(store.pause_failed_groups)]
    paused = "select name from pgbeat.periodic_task where group_paused order by name"
    assert ["a", "c"] == [row["name"] for row in session.rows(paused)]
    author.rollback()
    assert ["b"] == store.sync_group_pauses()


@pytest.mark.parametrize("change", ["limit_group('g', null)", "define_group('g', pause_on_failure => true)"])
def test_a_group_that_is_stopped_and_loses_its_limit_keeps_its_jobs(
    store: BeatQueries, session: Session, clock: Clock, change: str
) -> None:
    define(session, max_active=1, pause_on_failure=True)
    due(store, "a", -1)
    due(store, "b", 0)
    tick(store)
    store.grant_slots(10)
    end(store, "a", "failed")
    store.pause_failed_groups()

    session.rows(f"select pgbeat.{change}")

    assert 0 == store.grant_slots(10)
    assert not store.look().slots_to_grant
    session.rows("select pgbeat.resume_group('g')")
    assert 1 == store.grant_slots(10)


def test_a_failure_stops_a_finished_group_and_it_stays_finished(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True, pause_on_failure=True)
    due(store, "a", 0)
    due(store, "b", 1)
    clock.advance(2 * SECOND)
    tick(store)
    store.grant_slots(10)
    session.rows("select pgbeat.finish_group('g')")
    end(store, "a", "failed")

    assert [] == store.pause_failed_groups()
    assert not store.look().failing
    assert "finished" == group(session)["state"]
    assert 0 == store.grant_slots(10)
    assert "which is stopped: job" in explained(session, "b")
    session.rows("select pgbeat.resume_group('g', retry => true)")
    assert "active" == group(session)["state"]
    assert 1 == store.grant_slots(10)
    assert ["a"] == under_way(store)


def test_two_failures_of_one_row_are_both_retried(store: BeatQueries, session: Session) -> None:
    define(session, pause_on_failure=True)
    insert(store, "a", schedule=None, group_name="g")
    for _ in range(2):
        session.rows("select pgbeat.trigger('a')")
        end(store, "a", "failed")
    store.pause_failed_groups()

    session.rows("select pgbeat.resume_group('g', retry => true)")

    assert 2 == session.value("select count(*) from pgbeat.active_job")


def test_a_group_is_not_renamed_while_jobs_wait_in_it(store: BeatQueries, session: Session) -> None:
    define(session, ordered=True)
    due(store, "a", 0)
    tick(store)
    renamed = said(session, "update pgbeat.task_group set name = 'h' where name = 'g'")
    assert "Jobs wait in the group 'g': a job knows its group by the name." in renamed


@pytest.mark.parametrize(
    ("settings", "kept"),
    [({"ordered": True}, True), ({"max_active": 1}, False), ({"max_active": 1, "pause_on_failure": True}, True)],
)
def test_a_pause_by_hand_keeps_what_waits_in_a_queue_and_skips_it_elsewhere(
    store: BeatQueries, session: Session, clock: Clock, settings: dict[str, Any], kept: bool
) -> None:
    define(session, **settings)
    due(store, "a", 0)
    due(store, "b", 1)
    clock.advance(2 * SECOND)
    tick(store)
    store.grant_slots(10)
    session.rows("select pgbeat.pause_group('g', 'stocktaking')")
    end(store, "a")

    store.grant_slots(10)
    store.recover(10, timedelta(days=1))

    assert ({"b": "buffered"} if kept else {}) == states(store)
    if kept:
        assert "its group 'g', which is paused (stocktaking)" in explained(session, "b")


def test_a_job_that_had_its_turn_before_the_pause_is_sent(store: BeatQueries, session: Session) -> None:
    define(session, ordered=True)
    due(store, "a", 0)
    tick(store)
    store.grant_slots(10)
    session.rows("select pgbeat.pause_group('g')")

    (taken,) = store.recover(10, timedelta(days=1))

    assert ("a", None) == (taken.periodic_task, taken.reason)


# State.


def test_state_and_paused_say_the_same(session: Session) -> None:
    define(session)
    for change, expected in (
        ("state = 'paused', pause_reason = 'x'", ("paused", True, "x")),
        ("paused = false", ("active", False, None)),
        ("paused = true", ("paused", True, None)),
        ("state = 'finished'", ("finished", False, None)),
        ("paused = true", ("paused", True, None)),
        ("state = 'active'", ("active", False, None)),
        ("state = 'waiting'", ("active", False, None)),
    ):
        session.rows(f"update pgbeat.task_group set {change}")
        found = group(session)
        assert expected == (found["state"], found["paused"], found["pause_reason"]), change


def test_the_rows_of_a_group_that_is_paused_by_its_state_do_not_run(store: BeatQueries, session: Session) -> None:
    define(session)
    due(store, "a", -1)
    session.rows("update pgbeat.task_group set state = 'paused'")
    assert not store.look().due
    session.rows("update pgbeat.task_group set state = 'active'")
    assert [] == session.rows("select from pgbeat.periodic_task where group_paused")


# Finished.


def test_a_finished_group_takes_no_new_jobs_and_what_waits_goes_on(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True)
    due(store, "a", 0)
    due(store, "b", 1)
    clock.advance(2 * SECOND)
    tick(store)
    session.rows("select pgbeat.finish_group('g')")
    due(store, "c", 2)
    rows = store.mark(10)
    (answer,) = store.submit([decided(row) for row in rows], "UTC", True, True)

    assert (False, "finished") == (answer.made, answer.reason)
    (skipped,) = session.rows("select periodic_task, reason, blocked_by from pgbeat.finished_job")
    assert ("c", "finished", None) == tuple(skipped.values())
    (row,) = session.rows("select run_count, next_run_at from pgbeat.periodic_task where name = 'c'")
    assert (0, NOON + 2 * SECOND + HOUR) == tuple(row.values())
    for name in ("a", "b"):
        assert 1 == store.grant_slots(10)
        end(store, name)


def test_nothing_new_is_asked_of_a_finished_group(store: BeatQueries, session: Session) -> None:
    due(store, "a", 3600)
    session.rows("select pgbeat.finish_group('g')")
    sentence = "The group 'g' is finished: it takes no new jobs."

    assert sentence in said(session, "select pgbeat.trigger('a')")
    assert sentence in said(session, 'select pgbeat.trigger_many(\'[{"name": "a"}]\')')
    past = "select pgbeat.backfill('a', '2026-12-01T00:00Z', '2026-12-02T00:00Z')"
    assert sentence in said(session, past)

    session.rows("select pgbeat.resume_group('g')")
    session.rows("select pgbeat.trigger('a')")


# Waiting for other groups.


def test_a_group_waits_while_another_has_anything_under_way_waiting_or_due(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "first", max_active=1)
    define(session, "then", waits_for=["first"])
    due(store, "f1", 1, "first")
    due(store, "f2", 1, "first")
    due(store, "t", 0, "then")
    tick(store)
    assert 1 == store.grant_slots(10), "nothing is due before"
    end(store, "t")

    session.rows("update pgbeat.periodic_task set next_run_at = %s where name = 't'", NOON + SECOND)
    clock.advance(2 * SECOND)
    rows = {row.name: row for row in store.mark(10)}
    store.submit([decided(rows["t"])], "UTC", True, True)
    assert 0 == store.grant_slots(10)
    assert "waiting" == group(session, "then")["state"]
    assert not store.look().slots_to_grant
    assert "its group 'then', which waits for the group 'first'" in explained(session, "t")

    store.submit([decided(rows["f1"]), decided(rows["f2"])], "UTC", True, True)
    for name in ("f1", "f2"):
        assert 1 == store.grant_slots(10)
        assert [name] == under_way(store)
        assert session.notified_by(lambda name=name: end(store, name))  # type: ignore[misc]
    assert 1 == store.grant_slots(10)
    assert ["t"] == under_way(store)
    assert "active" == group(session, "then")["state"]


def test_a_group_whose_waiting_job_is_gone_is_active_again(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "first", max_active=1)
    define(session, "then", waits_for=["first"])
    make_job(store.database, periodic_task="f", group_name="first", slot=1)
    due(store, "t", 0, "then")
    tick(store)
    store.grant_slots(10)
    assert "waiting" == group(session, "then")["state"]
    store.database.execute("delete from pgbeat.active_job where periodic_task = 't'")

    assert store.look().slots_to_grant
    store.grant_slots(10)

    assert "active" == group(session, "then")["state"]
    assert not store.look().slots_to_grant


@pytest.mark.parametrize(
    ("name", "waits_for", "sentence"),
    [
        ("a", ["a"], "No group may wait for itself: 'a' waits for 'a'"),
        ("a", ["c"], "No group may wait for itself: 'a' waits for 'c' waits for 'b' waits for 'a'"),
        ("a", ["nobody"], "waits_for names 'nobody', and no group is named so"),
        ("a", [""], "a name in waits_for has 0 characters, not 1 to 200"),
        ("a", [None], "a name in waits_for is null, not 1 to 200 characters"),
        ("a", ["b"] * 101, "waits_for has 101 names in 1 dimensions, not at most 100 in a plain list"),
    ],
)
def test_a_circle_and_an_unknown_group_are_refused(
    store: BeatQueries, session: Session, name: str, waits_for: list[str], sentence: str
) -> None:
    define(session, "a")
    define(session, "b", waits_for=["a"])
    define(session, "c", waits_for=["b"])

    told = said(session, "update pgbeat.task_group set waits_for = %s where name = %s", waits_for, name)

    assert sentence in told
    assert group(session, "a")["waits_for"] is None


def test_a_group_that_only_a_row_names_may_be_waited_for(store: BeatQueries, session: Session) -> None:
    due(store, "x", 60, "named by a row")
    define(session, waits_for=["named by a row"])
    assert ["named by a row"] == group(session)["waits_for"]


def test_a_group_that_another_waits_for_is_not_removed(session: Session) -> None:
    define(session, "a")
    define(session, "b", waits_for=["a"])
    sentence = "The group 'b' waits for the group 'a'."
    assert sentence in said(session, "delete from pgbeat.task_group where name = 'a'")
    assert sentence in said(session, "update pgbeat.task_group set name = 'z' where name = 'a'")


def test_a_circle_is_looked_for_in_a_wide_net_of_groups(session: Session) -> None:
    for number in range(30):
        define(session, f"s{number:02}", waits_for=[f"s{other:02}" for other in range(number)])
    told = said(session, "update pgbeat.task_group set waits_for = '{s29}' where name = 's00'")
    assert "No group may wait for itself: 's00' waits for 's29' waits for 's00'" in told


def test_two_who_close_a_circle_at_the_same_moment_do_not(session: Session, migrated_database: str) -> None:
    define(session, "a")
    define(session, "b")
    first, second = Transaction(migrated_database), Transaction(migrated_database)
    first.execute("update pgbeat.task_group set waits_for = '{b}' where name = 'a'")
    attempt = Attempt(lambda: second.execute("update pgbeat.task_group set waits_for = '{a}' where name = 'b'"))
    attempt.waits_for(first, Database(migrated_database))
    first.commit()
    with pytest.raises(Exception, match="No group may wait for itself"):
        attempt.answer()


# Which groups a beat looks at.


def test_jobs_that_wait_for_a_full_or_a_stopped_group_cost_a_look_nothing(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True)
    assert 0 == store.grant_slots(10)
    for number in range(3):
        due(store, f"r{number}", number)
    clock.advance(3 * SECOND)
    tick(store)
    assert 3 == session.value("select count(*) from pgbeat.group_to_check where not seen")

    assert 1 == store.grant_slots(10)
    assert 0 == session.value("select count(*) from pgbeat.group_to_check")
    session.rows("select pgbeat.pause_group('g')")
    end(store, "r0")
    assert store.look().slots_to_grant
    assert 0 == store.grant_slots(10)
    assert 0 == session.value("select count(*) from pgbeat.group_to_check")

    session.rows("select pgbeat.resume_group('g')")
    assert store.look().slots_to_grant
    assert 1 == store.grant_slots(10)


@pytest.mark.parametrize("what", ["ends", "is edited"])
def test_a_job_that_begins_to_wait_as_the_one_before_it_ends_is_not_forgotten(
    store: BeatQueries, session: Session, clock: Clock, migrated_database: str, what: str
) -> None:
    """The end is not committed yet when a beat finds the group full, and has not seen the job that waits."""
    define(session, max_active=1)
    make_job(store.database, periodic_task="a", group_name="g", slot=1)
    somebody = Session(migrated_database)
    somebody.rows("begin isolation level repeatable read; select 1")
    if what == "ends":
        somebody.rows("delete from pgbeat.active_job where periodic_task = 'a'")
    due(store, "b", 0)
    tick(store)
    assert 0 == store.grant_slots(10)
    if what == "is edited":
        somebody.rows("update pgbeat.task_group set max_active = 2 where name = 'g'")
    somebody.rows("commit")

    assert store.look().slots_to_grant
    assert 1 == store.grant_slots(10)


def test_a_group_whose_turn_nothing_says_is_found_by_the_hourly_look(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, ordered=True)
    due(store, "a")
    tick(store)
    session.rows("delete from pgbeat.group_to_check")
    assert not store.look().slots_to_grant

    assert ["g"] == store.recheck_groups()
    assert [] == store.recheck_groups()
    assert 1 == store.grant_slots(10)


def test_a_group_that_somebody_edits_is_looked_at_again(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    define(session, ordered=True)
    due(store, "a")
    tick(store)
    author = Transaction(migrated_database)
    author.execute("update pgbeat.task_group set max_active = 1 where name = 'g'")

    assert 0 == store.grant_slots(10)
    author.rollback()
    assert store.look().slots_to_grant
    assert 1 == store.grant_slots(10)


def test_a_group_that_is_full_does_not_hide_another_that_is_held(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "full", ordered=True)
    define(session, "slow", rate_limit="10/s")
    for name, group_name in (("f1", "full"), ("f2", "full"), ("s1", "slow"), ("s2", "slow"), ("s3", "slow")):
        due(store, name, 0, group_name)
    tick(store)

    assert 2 == store.grant_slots(10)
    assert [{"group_name": "slow", "seen": True}] == session.rows("select * from pgbeat.group_to_check")
    clock.advance(SECOND)
    assert store.look().slots_to_grant
    assert 1 == store.grant_slots(10)


def test_a_group_that_is_held_is_remembered_once(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, rate_limit="1/h")
    for number in range(5):
        due(store, f"r{number}", 0)
        tick(store)
        store.grant_slots(10)
    assert [{"group_name": "g", "seen": True}] == session.rows("select * from pgbeat.group_to_check")


# At a rate.


def test_at_a_rate_only_so_many_go_at_a_time_and_the_look_says_when_the_next_may(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, rate_limit="10/s")
    for number in range(12):
        due(store, f"r{number:02}")
    tick(store)

    granted = 0
    for _ in range(100):
        if store.look().slots_to_grant:
            granted += store.grant_slots(10)
        else:
            next_run_at = store.look().next_run_at
            if granted < 12:
                assert next_run_at is not None
                assert next_run_at <= clock.now() + timedelta(milliseconds=100)
        clock.advance(timedelta(milliseconds=10))
    assert 10 <= granted <= 11


def test_a_turn_in_a_group_in_which_nothing_waits_any_more_is_given_to_nobody(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, rate_limit="1/s")
    due(store, "a", 0)
    due(store, "b", 0)
    tick(store)
    assert 1 == store.grant_slots(10)
    assert {0} == {job["slot"] for job in session.rows("select slot from pgbeat.active_job where slot is not null")}
    session.rows("delete from pgbeat.active_job where state = 'buffered'")
    clock.advance(2 * SECOND)
    assert store.look().slots_to_grant
    assert 0 == store.grant_slots(10)
    assert not store.look().slots_to_grant


def test_unused_turns_are_not_saved_up(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, rate_limit="600/m")
    due(store, "a", 0)
    tick(store)
    assert 1 == store.grant_slots(10)
    clock.advance(HOUR)
    for number in range(5):
        due(store, f"b{number}")
    tick(store)
    assert 1 == store.grant_slots(10)
    assert 0 == store.grant_slots(10)


def test_a_fast_rate_goes_in_small_batches(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, rate_limit="1000/s")
    for number in range(500):
        due(store, f"r{number:03}")
    submit(store, store.mark(1000))
    assert 100 == store.grant_slots(1000)
    clock.advance(timedelta(milliseconds=50))
    assert 50 == store.grant_slots(1000)


def test_the_rows_of_a_group_take_turns_under_a_rate_limit(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, rate_limit="1/s")
    for name in ("a", "b", "c"):
        insert(store, name, schedule=None, group_name="g", overlap="allow")
    for _ in range(5):
        session.rows("select pgbeat.trigger('a')")
        clock.advance(timedelta(milliseconds=1))
    for name in ("b", "c"):
        session.rows("select pgbeat.trigger(%s)", name)

    order = []
    for _ in range(7):
        before = set(under_way_ids(store))
        assert 1 == store.grant_slots(10)
        (new,) = set(under_way_ids(store)) - before
        order.append(new[1])
        clock.advance(SECOND)
    assert ["a", "b", "c", "a", "a", "a", "a"] == order


def under_way_ids(store: BeatQueries) -> list[tuple[str, str]]:
    rows = store.database.execute("select id::text, periodic_task from pgbeat.active_job where state <> 'buffered'")
    return [(row[0], row[1]) for row in rows]


def test_a_beat_whose_statement_began_before_another_gave_the_turn_gives_none(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, rate_limit="1/h")
    due(store, "a", -1)
    due(store, "b", -1)
    tick(store)
    assert 1 == store.grant_slots(10)
    clock.advance(-SECOND)
    assert 0 == store.grant_slots(10)


def test_a_clock_that_was_set_back_stops_no_group(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, rate_limit="1/s")
    due(store, "a", -7200)
    due(store, "b", -7200)
    tick(store)
    assert 1 == store.grant_slots(10)
    clock.advance(-HOUR)
    assert store.look().slots_to_grant
    assert 1 == store.grant_slots(10)


RATES = ["10", "10/s", "100/m", "5/h", "0.5/h", " 10 / s ", "1000000/s", "", "x", "0", "0/m", "-1", "1/d", "1e3", "10/",
         "1000000001", "0.0000001/h", "10/s\n", "9999999/s", "١/s"]  # fmt: skip


@pytest.mark.parametrize("rate", RATES)
def test_sql_and_python_agree_on_what_is_a_rate(session: Session, rate: str) -> None:
    try:
        read_group({"rate_limit": rate})
        python = ""
    except InvalidPeriodicTask as error:
        python = str(error)
    try:
        define(session, rate_limit=rate)
        sql = ""
    except psycopg2.Error as error:
        sql = str(error)
    assert bool(python) == bool(sql), (python, sql)


# All of them.


def test_a_definition_replaces_all_settings_and_keeps_the_state(session: Session) -> None:
    define(session, ordered=True, pause_on_failure=True, rate_limit="5/m")
    session.rows("select pgbeat.pause_group('g', 'x')")
    define(session, max_active=2)
    found = group(session)
    assert (2, False, False, None, "paused", "x") == tuple(
        found[column] for column in ("max_active", "ordered", "pause_on_failure", "rate_limit", "state", "pause_reason")
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("state = 'open'", "state is 'open', not one of active, paused, waiting, finished"),
        ("state = null", "state is null, not one of active, paused, waiting, finished"),
        ("ordered = null", "ordered is null, not true or false"),
        ("paused = null", "paused is null, not true or false"),
        ("pause_on_failure = null", "pause_on_failure is null, not true or false"),
        ("rate_limit = 'fast'", "rate_limit is 'fast', not a number of jobs per second, minute or hour"),
        ("ordered = true, max_active = 2", "max_active is 2, but an ordered group has one job at a time"),
    ],
)
def test_each_bad_value_is_one_sentence(session: Session, change: str, sentence: str) -> None:
    define(session)
    assert sentence in said(session, f"update pgbeat.task_group set {change}")
