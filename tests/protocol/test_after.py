"""One periodic task after others: the columns `after` and `after_condition`."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from click.testing import CliRunner

from celery_pgbeat import PgBeat
from celery_pgbeat.cli import main
from celery_pgbeat.errors import PeriodicTaskInUse
from celery_pgbeat.planning import NOTHING, Decision, Postponed, Rules, decide, plan, range_of
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.clock import Clock
from tests.harness.cost import slowness
from tests.harness.session import Session
from tests.harness.ticks import LEASE, beat

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
YEARLY = "0 0 1 1 *"  # not due by itself: a test says when it is
RULES = Rules(timezone="UTC", on_time=2 * LEASE, lease=LEASE)
NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)


@pytest.fixture
def clock(migrated_database: str) -> Clock:
    clock = Clock(migrated_database)
    clock.stand_at(NOON)
    return clock


@pytest.fixture
def store(migrated_database: str, clock: Clock) -> BeatQueries:
    return beat(migrated_database)


def define(session: Session, name: str, schedule: str | None = None, **columns: Any) -> None:
    """Define a row by the door for SQL."""
    given = "".join(f", {column} => %s" for column in columns)
    session.rows(f"select pgbeat.schedule(%s, 'app.probe', %s{given})", name, schedule, *columns.values())


def due(session: Session, clock: Clock, *names: str, after: timedelta = MINUTE) -> None:
    """Let some time pass, and have these rows be due for the new instant, by their schedules."""
    clock.advance(after)
    session.rows(
        "update pgbeat.periodic_task set next_run_at = pgbeat.now(), planned_for = pgbeat.now(), "
        "revision = revision + 1, planned_revision = revision + 1 where name = any (%s)",
        list(names),
    )


def submit(store: BeatQueries, *names: str) -> None:
    """Mark what is due, and decide and submit these rows, or all."""
    answers = [decide(row, RULES) for row in store.mark(100) if not names or row.name in names]
    store.postpone([one for one in answers if isinstance(one, Postponed)])
    decisions = [one for one in answers if isinstance(one, Decision)]
    store.submit(decisions, "UTC", True, True)


def tick_planned(store: BeatQueries) -> None:
    """Plan the rows that are new."""
    store.plan([plan(row, RULES) for row in store.unplanned(100)], "UTC")


def tick(store: BeatQueries) -> None:
    """Do what a beat does until there is nothing left: settle, decide, submit."""
    for _ in range(10):
        work = store.look()
        if not (work.downstream or work.due):
            return
        store.settle_downstream(100)
        submit(store)
    raise AssertionError(f"a beat never comes to rest: {work}")


def states(session: Session) -> dict[str, str]:
    """Return the state of each job that is not final, by its row."""
    return {
        row["periodic_task"]: row["state"]
        for row in session.rows("select * from pgbeat.active_job order by scheduled_for, id")
    }


def end(session: Session, name: str, state: str = "succeeded") -> uuid.UUID:
    """End the oldest job of a row that is under way; return it."""
    (row,) = session.rows(
        "with deleted as (delete from pgbeat.active_job as job where id = ("
        "  select id from pgbeat.active_job where periodic_task = %s and wait_reason is null "
        "  order by scheduled_for limit 1) returning job) "
        "insert into pgbeat.finished_job select final.* from deleted "
        "cross join lateral pgbeat.archived(job, %s) as final returning id",
        name,
        state,
    )
    found: uuid.UUID = row["id"]
    return found


def history(session: Session, name: str) -> list[tuple[str, str | None, float]]:
    """Return what became of each occurrence of a row: state, reason, and minutes after noon."""
    return [
        (row["state"], row["reason"], (row["scheduled_for"] - NOON) / MINUTE)
        for row in session.rows(
            "select * from pgbeat.job where periodic_task = %s order by scheduled_for, created_at", name
        )
    ]


# With a schedule.


def test_an_occurrence_waits_until_the_task_before_has_ended_for_it(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "a", "b")
    tick(store)

    assert {"a": "pending", "b": "waiting"} == states(session)
    end(session, "a")
    tick(store)
    assert {"b": "pending"} == states(session)


def test_an_end_for_a_later_occurrence_lets_it_go_on(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "b")
    tick(store)
    assert {"b": "waiting"} == states(session)

    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)
    assert {"b": "pending"} == states(session)
    assert [("pending", None, 1)] == history(session, "b")


def test_an_upstream_task_at_another_time_counts_with_its_last_occurrence_before(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "load", YEARLY)
    define(session, "more", after=["load"])
    define(session, "tidy", YEARLY, after=["more"])
    due(session, clock, "load")
    tick(store)
    due(session, clock, "tidy")
    tick(store)
    assert {"load": "pending", "tidy": "waiting"} == states(session), "there is something left before"
    end(session, "load")
    tick(store)
    assert {"more": "pending", "tidy": "waiting"} == states(session)
    end(session, "more")
    tick(store)
    assert [("pending", None, 2.0)] == history(session, "tidy")

    end(session, "tidy")
    due(session, clock, "tidy")
    tick(store)
    assert ("pending", None, 3.0) == history(session, "tidy")[-1], "the last end counts until there is another"


def test_what_is_left_out_further_up_lets_nothing_wait_for_good(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "load", YEARLY, catchup="none")
    define(session, "more", after=["load"])
    define(session, "tidy", YEARLY, after=["more"], overlap="allow")
    due(session, clock, "load")
    tick(store)
    end(session, "load")
    tick(store)
    end(session, "more")
    due(session, clock, "load")
    due(session, clock, "tidy")
    submit(store, "tidy")
    store.unmark()
    store.settle_downstream(10)
    assert {"tidy": "waiting"} == states(session), "load is due and not decided"
    clock.advance(60 * MINUTE)
    tick(store)

    assert ("skipped", "too_late", 2.0) == history(session, "load")[-1]
    assert [("pending", None, 3.0)] == history(session, "tidy")


def test_an_end_for_an_earlier_occurrence_does_not_count(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "a")
    tick(store)
    due(session, clock, "a", "b")
    submit(store, "b")
    end(session, "a")
    store.settle_downstream(10)

    assert {"b": "waiting"} == states(session), "a is due for the same occurrence"


def test_an_end_that_was_before_the_occurrence_was_due_counts(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "a", "b")
    submit(store, "a")
    end(session, "a")
    store.unmark()
    clock.advance(20 * MINUTE)
    tick(store)

    assert [("pending", None, 1)] == history(session, "b")


@pytest.mark.parametrize("state", ["failed", "revoked", "expired", "lost", "untracked"])
def test_one_that_has_not_succeeded_has_it_skipped_and_named(
    store: BeatQueries, session: Session, clock: Clock, state: str
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    define(session, "c", YEARLY, after=["a"], after_condition="finish")
    due(session, clock, "a", "b", "c")
    tick(store)
    failed = end(session, "a", state)
    tick(store)

    assert {"c": "pending"} == states(session)
    assert [("skipped", "after", 1)] == history(session, "b")
    assert failed == session.value("select blocked_by from pgbeat.job where periodic_task = 'b'")


def test_what_was_skipped_has_ended_and_the_skip_goes_down_the_line(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    define(session, "c", YEARLY, after=["b"])
    define(session, "d", YEARLY, after=["c"], after_condition="finish")
    due(session, clock, "a", "b", "c", "d")
    tick(store)
    end(session, "a", "failed")
    tick(store)

    assert {"d": "pending"} == states(session)
    assert [("skipped", "after", 1)] == history(session, "b") == history(session, "c")


def test_a_success_that_a_person_has_brought_about_repairs_a_failure(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "slow", YEARLY)
    define(session, "b", YEARLY, after=["a", "slow"])
    due(session, clock, "a", "slow", "b")
    tick(store)
    failed = end(session, "a", "failed")
    clock.advance(MINUTE)
    session.rows("select pgbeat.retry_job(%s)", failed)
    end(session, "a")
    end(session, "slow")
    tick(store)

    assert {"b": "pending"} == states(session)


def test_each_of_several_tasks_must_have_ended(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY)
    define(session, "c", YEARLY, after=["a", "b"])
    due(session, clock, "a", "b", "c")
    tick(store)
    end(session, "a", "failed")
    tick(store)
    assert {"b": "pending", "c": "waiting"} == states(session)

    end(session, "b")
    tick(store)
    assert {} == states(session)
    assert [("skipped", "after", 1)] == history(session, "c")


def test_a_waiting_job_counts_for_overlap(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    for overlap in ("skip", "buffer_one", "cancel_other"):
        define(session, overlap, YEARLY, after=["a"], overlap=overlap)
    due(session, clock, "a", "skip", "buffer_one", "cancel_other")
    tick(store)
    due(session, clock, "skip", "buffer_one", "cancel_other")
    tick(store)

    assert [("waiting", None, 1), ("skipped", "overlap", 2)] == history(session, "skip")
    assert [("waiting", None, 1), ("buffered", None, 2)] == history(session, "buffer_one")
    assert [("skipped", "superseded", 1), ("waiting", None, 2)] == history(session, "cancel_other")


def test_a_buffered_job_waits_for_the_others_when_its_own_row_is_free(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"], overlap="buffer_all")
    due(session, clock, "a", "b")
    tick(store)
    end(session, "a")
    tick(store)
    due(session, clock, "a", "b")
    tick(store)
    assert [("pending", None, 1), ("buffered", None, 2)] == history(session, "b")

    end(session, "b")
    tick(store)
    assert [("succeeded", None, 1), ("waiting", None, 2)] == history(session, "b")


def test_it_waits_for_its_turn_in_its_group_when_the_others_have_ended(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    session.rows("select pgbeat.limit_group('g', 1)")
    define(session, "busy", YEARLY, group_name="g")
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"], group_name="g")
    due(session, clock, "a", "b", "busy")
    tick(store)
    store.grant_slots(10)
    assert {"a": "pending", "b": "waiting", "busy": "pending"} == states(session)

    end(session, "a")
    tick(store)
    assert {"b": "buffered", "busy": "pending"} == states(session)
    end(session, "busy")
    store.grant_slots(10)
    assert {"b": "pending"} == states(session)


def test_a_person_starts_it_without_waiting(store: BeatQueries, session: Session) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    session.rows("select pgbeat.trigger('b')")

    assert {"b": "pending"} == states(session)


def test_a_task_for_people_waits_and_lets_others_wait(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    session.rows("select pgbeat.schedule('sign', null, '0 0 1 1 *', kind => 'human', after => array['a'])")
    define(session, "b", YEARLY, after=["sign"])
    due(session, clock, "a", "sign", "b")
    tick(store)
    assert {"a": "pending", "sign": "waiting", "b": "waiting"} == states(session)

    end(session, "a")
    tick(store)
    assert {"sign": "created", "b": "waiting"} == states(session)
    job = session.value("select id from pgbeat.job where periodic_task = 'sign'")
    session.rows("select pgbeat.pick_up(%s, 'ann')", job)
    session.rows("select pgbeat.finish(%s, 'succeeded')", job)
    tick(store)
    assert {"b": "pending"} == states(session)


def test_who_puts_off_a_run_of_an_upstream_task_lets_the_others_go_on(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "a", "b")
    tick(store)
    end(session, "a")
    tick(store)
    end(session, "b")
    due(session, clock, "a", "b")
    submit(store, "b")
    store.unmark()
    store.settle_downstream(10)
    assert {"b": "waiting"} == states(session)

    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() + interval '1 hour' where name = 'a'")
    tick(store)
    assert {"b": "pending"} == states(session)


# Without a schedule.


def test_without_a_schedule_it_is_due_when_all_have_ended(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY)
    define(session, "c", after=["a", "b"])
    due(session, clock, "a", "b")
    tick(store)
    end(session, "a")
    tick(store)
    assert {"b": "pending"} == states(session)
    end(session, "b")
    tick(store)

    assert [("pending", None, 1)] == history(session, "c")


def test_its_occurrence_is_that_of_the_latest_of_them(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY)
    define(session, "c", after=["a", "b"])
    due(session, clock, "a")
    due(session, clock, "b")
    tick(store)
    end(session, "a")
    end(session, "b")
    tick(store)

    assert [("pending", None, 2)] == history(session, "c")


def test_an_end_counts_once(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY)
    define(session, "c", after=["a", "b"])
    for round_ in (1, 2, 3):
        due(session, clock, "a", "b")
        tick(store)
        end(session, "a")
        tick(store)
        assert {"b": "pending"} == states(session), round_
        end(session, "b")
        tick(store)
        end(session, "c")
        tick(store)

    assert [("succeeded", None, 1), ("succeeded", None, 2), ("succeeded", None, 3)] == history(session, "c")


@pytest.mark.parametrize("state", ["succeeded", "failed"])
def test_what_beats_decide_about_it_is_no_change_of_its_definition(
    store: BeatQueries, session: Session, clock: Clock, state: str
) -> None:
    define(session, "a", YEARLY)
    define(session, "c", after=["a"])
    before = session.task("c")
    for _ in range(2):
        due(session, clock, "a")
        tick(store)
        end(session, "a", state)
        tick(store)
        if state == "succeeded":
            end(session, "c")

    after = session.task("c")
    assert 2 == len(history(session, "c"))
    assert before["last_run_at"] != after["last_run_at"]
    assert (1, 1) == (after["revision"], after["planned_revision"])
    assert before["updated_at"] == after["updated_at"]


def test_one_task_that_is_ahead_of_another_does_not_mix_the_rounds(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "quick", YEARLY)
    define(session, "slow", YEARLY, overlap="buffer_all")
    define(session, "c", after=["quick", "slow"], overlap="allow")
    for _ in range(3):
        due(session, clock, "quick", "slow")
        tick(store)
        end(session, "quick")
    tick(store)
    assert [] == history(session, "c")
    for round_ in (1, 2, 3):
        end(session, "slow")
        tick(store)
        assert [("pending", None, n + 1) for n in range(round_)] == history(session, "c")


def test_a_failure_has_its_occurrence_skipped_and_the_next_one_runs(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    define(session, "c", after=["b"])
    due(session, clock, "a")
    tick(store)
    failed = end(session, "a", "failed")
    tick(store)
    assert [("skipped", "after", 1)] == history(session, "b") == history(session, "c")
    assert failed == session.value("select blocked_by from pgbeat.job where periodic_task = 'b'")

    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)
    assert [("skipped", "after", 1), ("pending", None, 2)] == history(session, "b")


def test_it_runs_after_a_failed_job_that_a_person_has_retried(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    due(session, clock, "a")
    tick(store)
    failed = end(session, "a", "failed")
    tick(store)
    clock.advance(MINUTE)
    session.rows("select pgbeat.retry_job(%s)", failed)
    end(session, "a")
    tick(store)

    assert [("skipped", "after", 1), ("pending", None, 2)] == history(session, "b")


def test_ends_while_it_was_paused_do_not_count(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    session.rows("select pgbeat.pause('b')")
    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)
    clock.advance(MINUTE)
    session.rows("select pgbeat.resume('b')")
    tick(store)
    assert [] == history(session, "b")

    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)
    assert [("pending", None, 3)] == history(session, "b")


def test_ends_before_it_was_defined_do_not_count(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    due(session, clock, "a")
    tick(store)
    define(session, "b", after=["a"])
    end(session, "a")
    tick(store)

    assert [] == history(session, "b")


def test_a_late_end_is_not_late_for_what_comes_after_it(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"], catchup="none", catchup_window=timedelta(minutes=1))
    due(session, clock, "a")
    tick(store)
    clock.advance(300 * MINUTE)
    end(session, "a")
    tick(store)

    assert [("pending", None, 1)] == history(session, "b")


def test_what_ends_while_it_is_due_is_not_lost(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"], overlap="buffer_all")
    due(session, clock, "a")
    tick(store)
    end(session, "a")
    store.settle_downstream(10)
    due(session, clock, "a")
    submit(store, "a")
    end(session, "a")
    assert 0 == store.settle_downstream(10)
    store.unmark()
    tick(store)

    assert [("pending", None, 1), ("buffered", None, 2)] == history(session, "b")


def test_it_stops_at_its_bounds(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "twice", after=["a"], max_runs=2, overlap="allow")
    define(session, "between", after=["a"], start_at=NOON + 2 * MINUTE, end_at=NOON + 3 * MINUTE, overlap="allow")
    for _ in range(4):
        due(session, clock, "a")
        tick(store)
        end(session, "a")
        tick(store)

    assert [1.0, 2.0] == [minute for _, _, minute in history(session, "twice")]
    assert [2.0, 3.0] == [minute for _, _, minute in history(session, "between")]
    assert "it is finished: it has reached max_runs (2)" in str(session.value("select pgbeat.explain('twice')"))
    assert "it is finished: nothing is left before its end_at" in str(session.value("select pgbeat.explain('between')"))


# With everything else: the cells of the table in docs/order.md.

MINUTELY = "* * * * *"
LATE = timedelta(seconds=40)  # too late for an occurrence to be on time


def test_catch_up_of_both_skips_the_same_occurrences_and_runs_the_latest(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", MINUTELY)
    define(session, "b", MINUTELY, after=["a"])
    define(session, "c", after=["b"])
    tick_planned(store)
    clock.advance(5 * MINUTE + LATE)
    tick(store)
    assert {"a": "pending", "b": "waiting"} == states(session)
    end(session, "a")
    tick(store)
    end(session, "b")
    tick(store)

    merged = ("skipped", "too_late", 1.0)
    assert [merged, ("succeeded", None, 5.0)] == history(session, "a") == history(session, "b")
    assert [("pending", None, 5.0)] == history(session, "c")


def test_catch_up_of_all_runs_one_after_the_other(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", MINUTELY, catchup="all")
    define(session, "b", MINUTELY, after=["a"], catchup="all")
    define(session, "c", after=["b"], overlap="buffer_all")
    tick_planned(store)
    clock.advance(3 * MINUTE + LATE)
    for _ in range(9):
        tick(store)
        store.promote_buffered()
        end(session, session.value("select periodic_task from pgbeat.active_job where state = 'pending' limit 1"))

    ran = [("succeeded", None, 1.0), ("succeeded", None, 2.0), ("succeeded", None, 3.0)]
    assert ran == history(session, "a") == history(session, "b") == history(session, "c")


def test_what_is_not_caught_up_has_not_ended(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", MINUTELY, catchup="none")
    define(session, "b", MINUTELY, after=["a"])
    tick_planned(store)
    clock.advance(5 * MINUTE + LATE)
    tick(store)
    assert {"b": "waiting"} == states(session)

    clock.stand_at(NOON + 6 * MINUTE)
    tick(store)
    end(session, "a")
    tick(store)
    assert [("skipped", "too_late", 1.0), ("succeeded", None, 6.0)] == history(session, "a")
    assert ("pending", None, 5.0) in history(session, "b")


def test_what_takes_longer_than_its_interval_lets_others_run(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", MINUTELY)
    define(session, "b", after=["a"])
    tick_planned(store)
    for _ in range(3):
        clock.advance(MINUTE)
        tick(store)
        clock.advance(MINUTE)
        tick(store)
        assert "b" not in states(session), "the occurrence that was left out is no end"
        end(session, "a")
        tick(store)
        end(session, "b")

    assert [1.0, 3.0, 5.0] == [minute for _, _, minute in history(session, "b")]


@pytest.mark.parametrize("condition", ["success", "finish"])
def test_what_may_not_run_has_ended(store: BeatQueries, session: Session, clock: Clock, condition: str) -> None:
    session.rows("select pgbeat.finish_group('closed') from pgbeat.limit_group('closed', 1)")
    define(session, "a", YEARLY, group_name="closed")
    define(session, "b", YEARLY, after=["a"], after_condition=condition)
    due(session, clock, "a", "b")
    tick(store)

    assert [("skipped", "finished", 1.0)] == history(session, "a")
    assert [("pending", None, 1.0) if condition == "finish" else ("skipped", "after", 1.0)] == history(session, "b")


def test_a_job_of_a_backfill_waits_as_any_other_and_a_later_success_is_enough(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"], overlap="allow")
    session.rows("select pgbeat.backfill('b', pgbeat.now() - interval '1 year', pgbeat.now())")
    row = store.mark_backfill("UTC")
    assert row is not None
    chosen = range_of(row, row.since, row.until, row.mode, RULES)
    step = chosen.step(row.reached, NOTHING, row.room, row.undecided_from)
    jobs = [chosen.job_id(row.backfill, occurrence) for occurrence in step.jobs]
    assert "waiting" == store.submit_backfill(row, step, jobs, chosen.total(row, step), 60 * MINUTE)
    assert {"b": "waiting"} == states(session)

    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)
    assert {"b": "pending"} == states(session)


def test_it_waits_for_a_task_that_is_paused(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "a", "b")
    session.rows("select pgbeat.pause('a', 'repairs')")
    tick(store)

    assert {"b": "waiting"} == states(session)
    assert "waits for the end of 'a' (paused)" in str(session.value("select pgbeat.explain('b')"))


def test_what_waits_in_a_row_that_is_paused_is_skipped_when_the_others_have_ended(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "a", "b")
    tick(store)
    session.rows("select pgbeat.pause('b')")
    end(session, "a")
    tick(store)
    store.recover(10, RULES.on_time)

    assert [("skipped", "paused", 1.0)] == history(session, "b")


def test_jitter_delays_but_does_not_change_which_end_counts(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", MINUTELY)
    define(session, "b", MINUTELY, after=["a"], jitter=timedelta(seconds=50))
    define(session, "c", after=["a"], jitter=timedelta(seconds=50))
    tick_planned(store)
    assert session.task("b")["next_run_at"] > NOON + MINUTE
    clock.advance(MINUTE)
    tick(store)
    end(session, "a")
    tick(store)
    assert {"c": "pending"} == states(session), "without a schedule there is no jitter"

    clock.stand_at(session.task("b")["next_run_at"])
    tick(store)
    assert [("pending", None, 1.0)] == history(session, "b")


@pytest.mark.parametrize("action", ["defer", "skip"])
def test_a_window_holds_what_comes_after_others(
    store: BeatQueries, session: Session, clock: Clock, action: str
) -> None:
    window = {"blackout": ["cron: 0 12 * * * PT10M"], "blackout_action": action}
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    define(session, "c", after=["a"], **window)
    clock.advance(MINUTE)
    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)
    if action == "skip":
        assert [("skipped", "blackout", 2.0)] == history(session, "c")
        return
    assert [] == history(session, "c")
    assert session.task("c")["next_run_at"] == NOON + 10 * MINUTE

    clock.advance(20 * MINUTE)
    tick(store)
    assert [("pending", None, 2.0)] == history(session, "c")


def test_a_task_that_a_window_defers_is_waited_for(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", MINUTELY, blackout=["cron: 0 12 * * * PT10M"])
    define(session, "b", YEARLY, after=["a"])
    tick_planned(store)
    due(session, clock, "b")
    tick(store)
    assert {"b": "waiting"} == states(session)

    clock.advance(9 * MINUTE)
    tick(store)
    end(session, "a")
    tick(store)
    assert {"b": "pending"} == states(session)


@pytest.mark.parametrize("overlap", ["skip", "buffer_one", "buffer_all", "allow"])
def test_without_a_schedule_overlap_decides_when_it_is_due(
    store: BeatQueries, session: Session, clock: Clock, overlap: str
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"], overlap=overlap)
    for _ in range(2):
        due(session, clock, "a")
        tick(store)
        end(session, "a")
        tick(store)

    second = {"skip": ("skipped", "overlap"), "allow": ("pending", None)}.get(overlap, ("buffered", None))
    assert [("pending", None, 1.0), (*second, 2.0)] == history(session, "b")


def test_a_job_that_asks_is_waited_for_until_somebody_has_decided(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY, on_error="ask")
    define(session, "b", after=["a"])
    due(session, clock, "a")
    tick(store)
    session.rows(
        "update pgbeat.active_job set state = 'error', marked_by = null, marked_at = null, busy_until = pgbeat.now()"
    )
    tick(store)
    assert [] == history(session, "b")

    job = session.value("select id from pgbeat.job where periodic_task = 'a'")
    session.rows("select pgbeat.fail_job(%s, 'closed')", job)
    tick(store)
    assert [("skipped", "after", 1.0)] == history(session, "b")


def test_a_beat_that_is_later_than_catch_up_allows_drops_what_had_become_due(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"], catchup="none")
    due(session, clock, "a")
    tick(store)
    end(session, "a")
    store.settle_downstream(10)
    clock.advance(60 * MINUTE)
    tick(store)

    assert [("skipped", "too_late", 1.0)] == history(session, "b")


def test_an_end_that_is_left_from_another_round_does_not_stand_for_the_next_one(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY)
    define(session, "c", after=["a", "b"])
    session.rows("select pgbeat.trigger('a')")
    end(session, "a")
    due(session, clock, "a", "b", after=10 * MINUTE)
    tick(store)
    end(session, "b")
    tick(store)
    assert {"a": "pending"} == states(session), "a has something left to do for this occurrence"

    end(session, "a", "failed")
    tick(store)
    assert [("skipped", "after", 10.0)] == history(session, "c")


def test_a_round_that_one_of_them_has_left_out_shifts_no_other(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY)
    define(session, "c", after=["a", "b"])
    for _ in range(3):
        due(session, clock, "b")  # a has none of this round
        tick(store)
        end(session, "b")
        due(session, clock, "a", "b")
        tick(store)
        end(session, "a")
        tick(store)
        assert {"b": "pending"} == states(session)
        end(session, "b")
        tick(store)
        end(session, "c")

    assert [2.0, 4.0, 6.0] == [minute for _, _, minute in history(session, "c")]


@pytest.mark.parametrize("what", ["row", "group"])
def test_what_ends_while_a_resume_is_not_committed_is_not_forgotten(
    store: BeatQueries, session: Session, clock: Clock, migrated_database: str, what: str
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"], group_name="g")
    session.rows("select pgbeat.pause('b')" if what == "row" else "select pgbeat.pause_group('g')")
    author = Session(migrated_database)
    author.rows("begin")
    author.rows("select pgbeat.resume('b')" if what == "row" else "select pgbeat.resume_group('g')")
    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)
    author.rows("commit")
    tick(store)

    assert [("pending", None, 1.0)] == history(session, "b")


# Definitions.


def test_the_list_is_stored_with_each_name_once(session: Session) -> None:
    for name in ("a", "b"):
        define(session, name, YEARLY)
    define(session, "c", after=["b", "a", "b"])
    define(session, "d", after=[])

    assert (["b", "a"], None) == (session.task("c")["after"], session.task("d")["after"])
    assert "after is a list of lists" in str(
        session.refusal("select pgbeat.schedule('e', 'app.probe', after => array[['a'], ['b']])")
    )


def test_what_a_transaction_has_changed_again_before_the_check_counts_as_it_is_then(session: Session) -> None:
    for name in ("a", "x"):
        define(session, name, YEARLY)
    session.rows("begin")
    session.rows("select pgbeat.check_after(true)")
    define(session, "b", after=["x"])
    session.rows("delete from pgbeat.periodic_task where name = 'b'")
    define(session, "b", after=["a"])
    session.rows("commit")

    assert [{"upstream": "a", "downstream": "b"}] == session.rows("select * from pgbeat.dependency")


def test_an_unknown_task_is_refused_by_its_name(session: Session) -> None:
    define(session, "extract", YEARLY)
    error = session.refusal("select pgbeat.schedule('b', 'app.probe', after => array['extrakt'])")

    assert "after names 'extrakt', and no periodic task is named so. Did you mean 'extract'?" in str(error)
    assert error.pgcode == "22023"
    assert session.rows("select from pgbeat.periodic_task where name = 'b'") == []


def test_a_circle_is_refused_by_its_path(session: Session) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    define(session, "c", after=["b"])
    error = session.refusal("update pgbeat.periodic_task set after = array['c'] where name = 'a'")
    itself = session.refusal("update pgbeat.periodic_task set after = array['a'] where name = 'a'")

    assert "No periodic task may wait for itself: 'a' runs after 'c' runs after 'b' runs after 'a'" in str(error)
    assert "No periodic task may wait for itself: 'a' runs after 'a'" in str(itself)
    assert error.pgcode == "22023"


def test_one_statement_may_define_them_in_any_order(session: Session) -> None:
    session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, after) values "
        "('a', 'app.probe', null, array['b']), ('b', 'app.probe', '0 0 1 1 *', null)"
    )

    assert [{"upstream": "b", "downstream": "a"}] == session.rows("select * from pgbeat.dependency")


def test_a_task_that_another_names_can_be_neither_removed_nor_renamed(session: Session) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    removal = session.refusal("delete from pgbeat.periodic_task where name = 'a'")
    rename = session.refusal("update pgbeat.periodic_task set name = 'z' where name = 'a'")

    assert "The periodic task 'b' runs after 'a': take 'a' out of its column after first" in str(removal)
    assert "The periodic task 'b' runs after 'a': take 'a' out of its column after first" in str(rename)
    assert removal.pgcode == "55006"
    session.rows("delete from pgbeat.periodic_task")
    assert session.rows("select * from pgbeat.dependency") == []


def test_python_says_what_runs_after_a_task_that_is_to_be_removed(session: Session, migrated_database: str) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    door = PgBeat(url=migrated_database)
    for remove in (lambda: door.unschedule("a"), lambda: door.unschedule_many(["a"])):
        with pytest.raises(PeriodicTaskInUse, match="'b' runs after 'a': take 'a' out of its column after first"):
            remove()
    door.unschedule_many(["a", "b"])
    door.close()


def test_a_waiting_job_goes_on_when_after_is_taken_away(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "b")
    tick(store)
    session.rows("update pgbeat.periodic_task set after = '{}' where name = 'b'")
    tick(store)

    assert {"b": "pending"} == states(session)
    assert session.task("b")["after"] is None


def test_a_row_that_is_renamed_keeps_what_it_comes_after(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    session.rows("update pgbeat.periodic_task set name = 'z' where name = 'b'")
    due(session, clock, "a")
    tick(store)
    end(session, "a")
    tick(store)

    assert [("pending", None, 1)] == history(session, "z")


def test_explain_and_status_name_what_is_missing(store: BeatQueries, session: Session, clock: Clock) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    define(session, "c", after=["a", "b"])
    due(session, clock, "a", "b")
    tick(store)

    waiting = str(session.value("select pgbeat.explain('b')"))
    assert "waits for the end of 'a' (to be sent) for its occurrence of 2026-12-07 12:01:00Z or a later one" in waiting
    without = str(session.value("select pgbeat.explain('c')"))
    assert (
        "it runs when 'a' (to be sent) and 'b' (waiting for other tasks) have ended for an occurrence after "
        "2026-12-07 12:00:00Z" in without
    )
    assert {"b": "waiting for other tasks", "c": "after other tasks"} == {
        row["name"]: row["state"] for row in session.rows("select * from pgbeat.status where name in ('b', 'c')")
    }
    assert session.rows("select * from pgbeat.overdue where name <> 'a'") == []


def test_a_file_may_define_them_in_any_order(session: Session, migrated_database: str) -> None:
    names = [f"row {number:05}" for number in range(2_500)]  # more than one statement writes
    lines = [{"name": name, "after": [after]} for name, after in pairwise(names)]

    def imported(*given: dict[str, Any]) -> str:
        text = "\n".join(json.dumps({"task": "app.probe", **line}) for line in given)
        return CliRunner().invoke(main, ["--url", migrated_database, "import", "-"], input=text).output

    imported(*lines, {"name": names[-1]})
    assert session.value("select count(*) from pgbeat.dependency") == len(names) - 1

    circle = imported({"name": names[-1], "after": [names[0]]})
    assert "No periodic task may wait for itself: 'row 02499' runs after" in circle
    unknown = imported({"name": "x", "after": ["nowhere"]})
    assert "after names 'nowhere', and no periodic task is named so" in unknown
    assert session.value("select count(*) from pgbeat.dependency") == len(names) - 1


def test_one_that_no_beat_has_seen_is_found_by_the_doctor_and_by_the_hourly_recheck(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"])
    due(session, clock, "a", "b")
    tick(store)
    operators = AdminQueries(store.database)
    clock.advance(10 * MINUTE)
    assert "forgotten" not in operators.stuck()
    end(session, "a")
    session.rows("delete from pgbeat.dependency_to_check")  # as if no trigger had written it
    session.rows("insert into pgbeat.dependency_to_check (downstream) values ('another')")

    assert "b" == operators.stuck()["forgotten"]["name"]
    store.recheck_downstream()
    tick(store)

    assert {"b": "pending"} == states(session)


def test_the_last_end_is_kept_for_those_that_come_after_it_however_short_the_retention_is(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "yearly", YEARLY)
    define(session, "alone", YEARLY)
    define(session, "daily", YEARLY, after=["yearly"])
    session.rows("select pgbeat.make_days()")
    for number in range(3):
        due(session, clock, "yearly", "alone")
        tick(store)
        ended = end(session, "yearly", "succeeded" if number == 2 else "failed")
        end(session, "alone")

    clock.advance(100 * DAY)
    for _ in range(2):  # the second one finds nothing to drop
        store.prune(7 * DAY)
        clock.advance(DAY)

    assert [("yearly", ended)] == [
        (row["periodic_task"], row["id"]) for row in session.rows("select * from pgbeat.finished_job")
    ]
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() + interval '1 year'")
    tick_planned(store)
    due(session, clock, "daily")
    tick(store)
    assert {"daily": "pending"} == states(session)

    session.rows("update pgbeat.periodic_task set after = null where name = 'daily'")
    store.prune(7 * DAY)
    assert [] == session.rows("select * from pgbeat.finished_job")


def test_a_beat_does_not_rest_before_it_has_looked_at_all_that_may_go_on(
    store: BeatQueries, session: Session, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    session.rows("select pgbeat.schedule('b' || n, 'app.probe', after => array['a']) from generate_series(1, 25) n")

    assert [True, True, False] == [store.settle_downstream(10) > 0 for _ in range(3)]
    assert not store.look().downstream


def test_a_beat_does_not_hurry_because_of_what_another_transaction_has_locked(
    store: BeatQueries, session: Session, migrated_database: str
) -> None:
    define(session, "a", YEARLY)
    session.rows("select pgbeat.schedule('b' || n, 'app.probe', after => array['a']) from generate_series(1, 10) n")
    author = Session(migrated_database)
    author.connection.autocommit = False
    author.rows("select from pgbeat.periodic_task where after is not null for update")

    assert 0 == store.settle_downstream(10)
    author.connection.rollback()
    assert store.look().downstream
    assert store.settle_downstream(10) > 0


def test_what_another_transaction_has_locked_keeps_nothing_behind_it(
    store: BeatQueries, session: Session, clock: Clock, migrated_database: str
) -> None:
    define(session, "a", YEARLY)
    session.rows("select pgbeat.schedule('b' || n, 'app.probe', after => array['a']) from generate_series(1, 25) n")
    session.rows("select pgbeat.schedule('c', 'app.probe', after => array['a'])")
    settle_all(store)
    due(session, clock, "a")
    submit(store, "a")
    author = Session(migrated_database)
    author.rows("begin")
    author.rows("select from pgbeat.periodic_task where name like %s for update", "b%")
    end(session, "a")

    settle_all(store)

    assert ["c"] == [row["name"] for row in session.rows(DUE_NOW)]
    author.rows("rollback")
    settle_all(store)
    assert 26 == len(session.rows(DUE_NOW))
    assert not store.look().downstream


DUE_NOW = "select name from pgbeat.periodic_task where next_run_at <= pgbeat.now()"


def settle_all(store: BeatQueries) -> None:
    """Look, ten at a time, at what may go on, until a beat would rest."""
    for _ in range(10):
        if not store.settle_downstream(10):
            return
    raise AssertionError("a beat never comes to rest")


def with_slow_ends(session: Session, function: str, seconds: float) -> None:
    """Have each call of a function that reads ends take so long."""
    (definition,) = session.row(
        "select pg_get_functiondef(oid) from pg_proc where proname = %s and pronamespace = 'pgbeat'::regnamespace",
        function,
    ).values()
    head, begin, body = definition.partition("\nbegin\n")
    session.rows(f"{head}{begin}    perform pg_sleep({seconds});\n{body}")


def reasons_left(session: Session) -> list[tuple[str, int]]:
    rows = session.rows("select downstream, tries from pgbeat.dependency_to_check order by downstream")
    return [(row["downstream"], row["tries"]) for row in rows]


@pytest.mark.parametrize("schedule", [None, YEARLY])
def test_rows_whose_ends_take_long_to_read_are_looked_at_a_few_at_a_time(
    session: Session, store: BeatQueries, clock: Clock, schedule: str | None
) -> None:
    define(session, "a", YEARLY)
    names = ["b1", "b2", "b3", "b4"]
    for name in names:
        define(session, name, schedule, after=["a"])
    tick_planned(store)
    due(session, clock, "a", *(names if schedule else []))
    tick(store)
    with_slow_ends(session, "ends_for" if schedule else "due_after", 0.15)
    end(session, "a")

    counts = []
    while not counts or counts[-1]:
        counts.append(store.settle_downstream(100))
        left = reasons_left(session)
        assert len(left) == max(4 - 2 * len(counts), 0)
        assert {1} >= {tries for _, tries in left}

    assert 3 == len(counts)
    submit(store)
    assert dict.fromkeys(names, "pending") == states(session)


def test_the_earlier_of_two_waiting_jobs_of_a_row_is_looked_at_first_and_the_later_one_not_before_it_goes_on(
    session: Session, store: BeatQueries, clock: Clock
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", YEARLY, after=["a"], overlap="allow")
    tick_planned(store)
    for _ in range(3):
        due(session, clock, "b")
        tick(store)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() where name = 'a'")
    tick(store)
    session.rows("create sequence public.calls")
    with_slow_ends(session, "ends_for", 0)
    (definition,) = session.row("select pg_get_functiondef('pgbeat.ends_for'::regproc)").values()
    session.rows(definition.replace("perform pg_sleep(0);", "perform nextval('public.calls');"))
    session.rows("insert into pgbeat.dependency_to_check (downstream) values ('b')")

    assert 0 == store.settle_downstream(100)
    assert 1 == session.value("select last_value from public.calls where is_called")

    end(session, "a")
    assert 3 == store.settle_downstream(100)


@pytest.mark.parametrize("tries", [-1, 2_000_000_001, 2_147_483_647])
def test_a_reason_to_look_has_no_number_of_tries_to_which_none_can_be_added(session: Session, tries: int) -> None:
    refused = session.refusal("insert into pgbeat.dependency_to_check (downstream, tries) values ('v', %s)", tries)

    assert "counter_check" == refused.diag.constraint_name


def test_a_locked_row_that_was_tried_as_often_as_can_be_counted_keeps_its_turn(
    session: Session, store: BeatQueries, migrated_database: str
) -> None:
    define(session, "a", YEARLY)
    define(session, "b", after=["a"])
    session.rows("delete from pgbeat.dependency_to_check")
    session.rows("insert into pgbeat.dependency_to_check (downstream, tries) values ('b', 2000000000)")
    other = Session(migrated_database)
    other.rows("begin")
    other.rows("select from pgbeat.periodic_task where name = 'b' for update")

    assert 0 == store.settle_downstream(100)

    assert [("b", 2_000_000_000)] == reasons_left(session)


def make_row_far_behind(session: Session, number: int, chained: bool) -> None:
    """Make a row after many, after one that is under way and after one that has ended a hundred times since.

    Args:
        number: how many others come before it.
        chained: whether it comes after the last of these, each of which comes after the one before it.
    """
    names = [f"u{place}" for place in range(1, number + 1)]
    after = {name: [before] for before, name in pairwise(names)} if chained else {}
    after["behind"] = [*(names[-1:] if chained else names), "under-way", "often"]
    session.rows("set session_replication_role = replica")
    session.rows(
        "insert into pgbeat.periodic_task (name, task, after, planned_from, last_run_at, planned_revision, "
        "after_condition) select name, 'app.probe', "
        "(select array_agg(one) from jsonb_array_elements_text(%s::jsonb -> name) as one), "
        "pgbeat.now() - interval '1 day', case when name ~ '^u' then pgbeat.now() end, 1, 'finish' "
        "from unnest(%s::text[]) as name",
        json.dumps(after),
        [*names, "under-way", "often", "behind"],
    )
    session.rows(
        "insert into pgbeat.dependency select distinct unnest(after), name from pgbeat.periodic_task "
        "where after is not null"
    )
    session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select gen_random_uuid(), name, at, 'manual', 'succeeded', 'a', at, at from ("
        "  select unnest(%s::text[]) as name, pgbeat.now() - interval '9 hours' as at union all "
        "  select 'often', pgbeat.now() - number * interval '1 minute' from generate_series(1, 100) as number) as one",
        [*names, "under-way"],
    )
    session.rows(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, due_at, origin, state, exclusive, task, "
        "busy_until, tracking, on_lost, pickup_deadline, message) select gen_random_uuid(), 'under-way', at, at, "
        "'manual', 'sent', false, 'a', 'infinity', 'full', 'give_up', '1h', '{}' "
        "from (select pgbeat.now() - interval '8 hours' as at) as given"
    )
    session.rows("set session_replication_role = origin")
    session.rows("analyze")


@pytest.mark.parametrize(("number", "chained"), [(98, False), (1_500, True)])
@pytest.mark.usefixtures("clock")
def test_a_row_behind_many_others_is_looked_at_in_a_moment(session: Session, number: int, chained: bool) -> None:
    make_row_far_behind(session, number, chained)
    session.rows("insert into pgbeat.dependency_to_check (upstream) values ('often')")
    session.rows("select set_config('statement_timeout', %s, false)", f"{1000 * slowness():.0f}ms")

    assert 0 == session.value("select pgbeat.settle_downstream()")
    assert "it is not known" not in session.value("select pgbeat.explain('behind')")


@pytest.mark.usefixtures("clock")
def test_of_a_row_behind_more_than_five_thousand_others_it_is_not_known_whether_it_can_run(session: Session) -> None:
    make_row_far_behind(session, 5_000, True)
    session.rows("insert into pgbeat.dependency_to_check (upstream) values ('often')")
    session.rows("select set_config('statement_timeout', %s, false)", f"{1000 * slowness():.0f}ms")

    assert 0 == session.value("select pgbeat.settle_downstream()")
    assert "it is not known whether it can run: more than 5000 tasks come before it" in session.value(
        "select pgbeat.explain('behind')"
    )
