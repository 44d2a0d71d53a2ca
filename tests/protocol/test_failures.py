"""`pause_after_failures`: how ends are counted, when a pause is due, and what it holds back until it is made."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import Finish, MessageCopy, Start, Unstarted, WorkerQueries
from tests.harness.clock import Clock
from tests.harness.jobs import active, bury, finished, make_job, state
from tests.harness.session import Session
from tests.harness.ticks import HOUR, beat, decided, insert, jobs, row_of
from tests.harness.transactions import Attempt, Transaction, at_once

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
ON_TIME = timedelta(seconds=32)
SILENCE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)


@pytest.fixture
def store(migrated_database: str, database_clock: Clock) -> Iterator[BeatQueries]:
    """A beat at noon, with a row `a` that is paused after three failures."""
    database_clock.stand_at(NOON)
    made = beat(migrated_database)
    insert(made, "a", pause_after_failures=3, next_run_at=NOON)
    yield made
    made.database.close()


@pytest.fixture
def reports(store: BeatQueries) -> WorkerQueries:
    return WorkerQueries(store.database)


def start_of(job: uuid.UUID, attempt: int = 0) -> Start:
    return Start(job, 0, attempt, uuid.uuid4(), "worker")


def job(reports: WorkerQueries, name: str = "a", **columns: Any) -> Start:
    """Make a job that carries the count's limit; several of them may be under way."""
    columns = {"periodic_task": name, "pause_after_failures": 3, "exclusive": False, **columns}
    return start_of(make_job(reports.database, **columns))


def end(reports: WorkerQueries, *states: str, name: str = "a", **columns: Any) -> Start:
    """Have one job after the other end so; return the last."""
    for ending in states:
        start = job(reports, name, **columns)
        assert reports.finish(start, ending)
    return start


def count(database: Database, name: str = "a") -> tuple[int, bool] | None:
    """Return how many failures are counted, and whether a pause is due."""
    rows = database.execute(
        "select failures_in_row, pause_due from pgbeat.periodic_task_state where name = %(name)s", {"name": name}
    )
    return (rows[0][0], rows[0][1]) if rows else None


def is_due(store: BeatQueries, name: str = "a") -> bool:
    """Tell whether the pause holds already."""
    (row,) = store.database.execute(
        "select pgbeat.pause_is_due(name, failures_from, pause_after_failures) from pgbeat.periodic_task "
        "where name = %(name)s",
        {"name": name},
    )
    return bool(row[0])


def is_enabled(store: BeatQueries, name: str = "a") -> bool:
    return bool(row_of(store, name)["enabled"])


# The count


def test_after_so_many_failures_in_a_row_a_beat_pauses_with_reason_and_time(
    store: BeatQueries, reports: WorkerQueries, database_clock: Clock
) -> None:
    end(reports, "failed", "failed")
    assert not store.look().failing
    assert [] == store.pause_failing(10)
    database_clock.advance(SECOND)
    last = end(reports, "failed")
    assert store.look().failing
    database_clock.advance(SECOND)

    reason = f"3 failed jobs in a row, the last at 2026-12-07 12:00:01Z: {last.job}"
    assert [("a", reason)] == store.pause_failing(10)

    row = row_of(store, "a")
    assert (False, reason, "pgbeat", None) == tuple(
        row[column] for column in ("enabled", "pause_reason", "paused_by", "paused_until")
    )
    assert NOON + 2 * SECOND == row["updated_at"]
    assert not store.look().failing
    (sentence,) = store.database.execute("select pgbeat.explain('a')")
    assert f"it is paused by pgbeat ({reason})" in sentence[0]


def test_a_success_begins_the_count_anew(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed", "succeeded", "failed", "failed")
    assert (2, False) == count(store.database)
    end(reports, "failed")
    assert (3, True) == count(store.database)


def test_one_failure_may_be_enough(store: BeatQueries, reports: WorkerQueries) -> None:
    insert(store, "once", pause_after_failures=1)
    end(reports, "failed", name="once")
    ((name, reason),) = store.pause_failing(10)
    assert name == "once"
    assert str(reason).startswith("1 failed job, the last at ")


def test_the_failure_that_makes_the_pause_due_wakes_a_beat(reports: WorkerQueries, session: Session) -> None:
    end(reports, "failed")
    assert not session.notified_by(lambda: end(reports, "failed"))
    assert session.notified_by(lambda: end(reports, "failed"))


def test_a_job_without_a_limit_leaves_no_trace(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "succeeded", "failed", pause_after_failures=None)
    assert count(store.database) is None


def test_what_never_failed_leaves_no_trace(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "succeeded", "succeeded")
    assert count(store.database) is None


@pytest.mark.parametrize("ending", ["revoked", "expired", "lost", "asked", "retried", "requeued"])
def test_other_ends_change_nothing(store: BeatQueries, reports: WorkerQueries, ending: str) -> None:
    end(reports, "failed", "failed")
    one = job(reports)
    if ending == "revoked":
        assert reports.finish(one, "revoked")
    elif ending == "expired":
        assert reports.end_unstarted(one, "expired", "worker")
    elif ending == "lost":
        bury(store.database, one.job)
    else:
        assert reports.start(one, SILENCE)
        if ending == "asked":
            store.database.execute("update pgbeat.active_job set stop_request = 'cancel'")
            assert reports.finish(one, "failed")
        elif ending == "retried":
            assert reports.retry(one, SECOND, "again")
        else:
            assert reports.requeue(one, "again")
    expected = {"asked": "revoked", "retried": "retrying", "requeued": "sent"}.get(ending, ending)
    assert expected == state(store.database, one.job)
    assert (2, False) == count(store.database)


def test_a_job_asked_to_end_that_succeeds_all_the_same_is_a_success(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed")
    end(reports, "succeeded", stop_request="cancel")
    assert (0, False) == count(store.database)


def test_a_message_that_names_an_unknown_task_is_a_failure(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed")
    one = job(reports)
    assert reports.end_unstarted(MessageCopy(one.job, 0, 0), "failed", "worker", error="unregistered task")
    assert (3, True) == count(store.database)


@pytest.mark.parametrize(
    ("origin", "expected"), [("manual", (3, True)), ("catchup", (3, True)), ("backfill", (2, False))]
)
def test_a_backfill_does_not_count_and_all_else_does(
    store: BeatQueries, reports: WorkerQueries, origin: str, expected: tuple[int, bool]
) -> None:
    end(reports, "failed", "failed")
    end(reports, "failed", origin=origin)
    assert expected == count(store.database)


def test_a_backfill_that_succeeds_resets_nothing(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed")
    end(reports, "succeeded", origin="backfill")
    assert (2, False) == count(store.database)


def test_a_failure_that_turns_out_to_have_been_a_revocation_is_taken_back(
    store: BeatQueries, reports: WorkerQueries
) -> None:
    last = end(reports, "failed", "failed", "failed")
    assert reports.revoke_failed(last, "terminated")
    assert (2, False) == count(store.database)
    assert not reports.revoke_failed(last, "terminated"), "once"
    assert (2, False) == count(store.database)


def test_a_pause_stays_due_where_enough_failures_remain_when_one_is_taken_back(
    store: BeatQueries, reports: WorkerQueries
) -> None:
    last = end(reports, "failed", "failed", "failed", "failed")
    assert reports.revoke_failed(last, "terminated")
    assert (3, True) == count(store.database)
    assert is_due(store)


def test_an_earlier_failure_that_is_overruled_leaves_the_count_of_later_ones(
    store: BeatQueries, reports: WorkerQueries
) -> None:
    first = end(reports, "failed")
    end(reports, "succeeded", "failed")
    assert reports.revoke_failed(first, "terminated")
    assert (1, False) == count(store.database)


# Many ends at once


def tell(reports: WorkerQueries, *ends: tuple[str, str]) -> None:
    finishes = [Finish(job(reports, name), ending) for name, ending in ends]
    # The ids of the jobs are in no order: only the order of the telling may count.
    assert set() == reports.finish_many(finishes)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (["failed", "failed", "failed"], (3, True)),
        (["failed", "failed", "succeeded", "failed"], (1, False)),
        (["failed", "failed", "failed", "succeeded"], (3, True)),  # a beat might have paused before
        (["failed", "failed", "succeeded"], (0, False)),
        (["succeeded", "failed", "failed"], (2, False)),
        (["failed", "revoked", "failed"], (2, False)),
        (["succeeded", "succeeded"], None),
    ],
)
def test_ends_that_are_reported_together_count_in_their_order(
    store: BeatQueries, reports: WorkerQueries, told: list[str], expected: tuple[int, bool] | None
) -> None:
    for name in (f"row-{number}" for number in range(8)):  # each with ids in another order
        insert(store, name, pause_after_failures=3)
        tell(reports, *((name, ending) for ending in told))
        assert expected == count(store.database, name)


def test_names_reported_together_do_not_count_for_each_other(store: BeatQueries, reports: WorkerQueries) -> None:
    for name in ("b", "c"):
        insert(store, name, pause_after_failures=3)
    tell(reports, *[("c", "failed"), ("a", "failed"), ("b", "failed")] * 2, ("b", "succeeded"), ("c", "failed"))
    assert [(2, False), (0, False), (3, True)] == [count(store.database, name) for name in "abc"]


def test_ends_from_the_result_backend_count_in_their_order(store: BeatQueries, reports: WorkerQueries) -> None:
    told = [job(reports, tracking="result").job for _ in range(5)]
    assert 5 == store.finish_by_result(
        list(zip(told, ["failed", "succeeded", "failed", "failed", "revoked"], strict=True))
    )
    assert (2, False) == count(store.database)
    assert 1 == store.finish_by_result([(job(reports, tracking="result").job, "failed")])
    assert (3, True) == count(store.database)


# Where the count begins


@pytest.mark.parametrize(
    "resume",
    [
        "select pgbeat.resume('a')",
        "update pgbeat.periodic_task set enabled = true",
        "update pgbeat.periodic_task set paused_until = pgbeat.now()",
    ],
)
def test_a_resume_begins_the_count_anew(store: BeatQueries, reports: WorkerQueries, resume: str) -> None:
    """Even at the very instant of the failures: the clock of this test stands."""
    for _ in range(2):
        end(reports, "failed", "failed", "failed")
        assert ["a"] == [name for name, reason in store.pause_failing(10) if reason]
        store.database.execute(resume)
        store.resume_due()
        assert is_enabled(store)
        end(reports, "failed", "failed")
        assert (2, False) == count(store.database)
        end(reports, "succeeded")


def test_a_resume_is_the_beginning_though_the_clock_was_set_back(
    store: BeatQueries, reports: WorkerQueries, database_clock: Clock
) -> None:
    end(reports, "failed", "failed", "failed")
    store.pause_failing(10)
    database_clock.advance(-HOUR)
    store.database.execute("select pgbeat.resume('a')")
    end(reports, "failed")
    assert (1, False) == count(store.database)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("pause_after_failures = 5", (3, False)),
        ("queue = 'other'", (3, True)),
        ("enabled = false", (3, False)),  # nothing is left to be paused
    ],
)
def test_other_changes_of_the_row_leave_the_count(
    store: BeatQueries, reports: WorkerQueries, change: str, expected: tuple[int, bool]
) -> None:
    end(reports, "failed", "failed")
    store.database.execute(f"update pgbeat.periodic_task set {change}")
    end(reports, "failed")
    assert expected == count(store.database)


def test_a_limit_that_is_set_counts_from_then_on(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed")
    store.database.execute("update pgbeat.periodic_task set pause_after_failures = null")
    store.database.execute("update pgbeat.periodic_task set pause_after_failures = 3")
    end(reports, "failed")
    assert (1, False) == count(store.database)


def test_a_name_begins_with_its_row(store: BeatQueries, reports: WorkerQueries, database_clock: Clock) -> None:
    """Neither a row that is renamed nor one that is made anew has anything of another that bore its name."""
    insert(store, "b", pause_after_failures=3)
    end(reports, "failed", "failed")
    database_clock.advance(SECOND)
    store.database.execute("delete from pgbeat.periodic_task where name = 'a'")
    store.database.execute("update pgbeat.periodic_task set name = 'a' where name = 'b'")
    end(reports, "failed", "failed")
    assert (2, False) == count(store.database)
    database_clock.advance(SECOND)
    store.database.execute("delete from pgbeat.periodic_task")
    insert(store, "a", pause_after_failures=3)
    end(reports, "failed")
    assert (1, False) == count(store.database)


def test_the_end_of_a_job_whose_row_was_removed_is_not_counted(store: BeatQueries, reports: WorkerQueries) -> None:
    store.database.execute("delete from pgbeat.periodic_task")
    end(reports, "failed", "succeeded")
    assert count(store.database) is None


# A pause that is due


def test_a_success_does_not_undo_a_pause_that_is_due(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed", "failed", "succeeded")
    assert is_due(store)
    assert ["a"] == [name for name, reason in store.pause_failing(10) if reason]


def test_the_reason_says_that_there_were_more_failures_than_the_limit(
    store: BeatQueries, reports: WorkerQueries
) -> None:
    last = end(reports, *["failed"] * 5)
    ((_, reason),) = store.pause_failing(10)
    assert f"5 failed jobs in a row, the last at 2026-12-07 12:00:00Z: {last.job}" == reason


def test_a_submit_does_not_pass_a_pause_that_is_due(store: BeatQueries, reports: WorkerQueries) -> None:
    insert(store, "b", pause_after_failures=3, next_run_at=NOON)
    insert(store, "c", next_run_at=NOON)
    rows = store.mark(10)
    end(reports, "failed", "failed", "failed")
    end(reports, "failed", "failed", name="b")
    before = row_of(store, "a")

    answers = store.submit([decided(row) for row in rows], "UTC", True, True)

    assert {"b", "c"} == {answer.name for answer in answers if answer.made}
    assert len(answers) == 2
    assert before == row_of(store, "a")
    assert {"a"} == store.still_marked(["a", "b", "c"]), "its beat comes again"
    carried = {row["periodic_task"]: (active(store.database, row["id"]) or {}) for row in jobs(store) if row["state"] == "pending"}  # fmt: skip  # noqa: E501
    assert {"b": 3, "c": None} == {name: row["pause_after_failures"] for name, row in carried.items()}


def test_after_a_resume_submits_pass_though_the_flag_still_stands(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed", "failed")
    store.database.execute("update pgbeat.periodic_task set enabled = false")
    store.database.execute("select pgbeat.resume('a')")
    store.database.execute("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    assert (3, True) == count(store.database)
    (row,) = store.mark(10)

    assert ["a"] == [answer.name for answer in store.submit([decided(row)], "UTC", True, True)]
    assert [("a", None)] == store.pause_failing(10)
    assert is_enabled(store)


def test_a_person_may_trigger_what_is_to_be_paused_and_what_is(store: BeatQueries, reports: WorkerQueries) -> None:
    end(reports, "failed", "failed", "failed")
    for _ in range(2):
        ((triggered,),) = store.database.execute("select pgbeat.trigger('a')")
        (recovered,) = store.recover(10, ON_TIME)
        assert (triggered, None) == (recovered.id, recovered.reason)
        assert 3 == (active(store.database, recovered.id) or {})["pause_after_failures"]
        reports.finish(start_of(recovered.id), "failed")
        store.pause_failing(10)
        assert not is_enabled(store)


def test_a_failed_manual_job_of_a_paused_row_does_not_pause_it_again(
    store: BeatQueries, reports: WorkerQueries
) -> None:
    end(reports, "failed", "failed", "failed")
    store.pause_failing(10)
    end(reports, "failed", origin="manual")
    assert (4, False) == count(store.database)


def test_what_waits_behind_the_last_failure_is_recorded_as_paused(
    store: BeatQueries, reports: WorkerQueries, database_clock: Clock
) -> None:
    store.database.execute("update pgbeat.periodic_task set overlap = 'buffer_all'")
    end(reports, "failed", "failed")
    for _ in range(3):
        (row,) = store.mark(10)
        store.submit([decided(row, row.next_run_at + SECOND)], "UTC", True, True)
        database_clock.advance(SECOND)
    first, second, third = (one["id"] for one in jobs(store) if one["origin"] == "schedule" and not one["finished_at"])
    assert ["pending", "buffered", "buffered"] == [state(store.database, one) for one in (first, second, third)]

    assert reports.finish(start_of(first), "failed")
    for _ in range(2):  # each makes way for the next one
        (recovered,) = store.recover(10, ON_TIME)
        assert "paused" == recovered.reason

    for one in (second, third):
        record = finished(store.database, one) or {}
        assert ("skipped", "paused") == (record["state"], record["reason"])


def test_what_waits_behind_an_earlier_failure_goes_out(
    store: BeatQueries, reports: WorkerQueries, database_clock: Clock
) -> None:
    """The control."""
    store.database.execute("update pgbeat.periodic_task set overlap = 'buffer_all'")
    end(reports, "failed")
    for _ in range(2):
        (row,) = store.mark(10)
        store.submit([decided(row, row.next_run_at + SECOND)], "UTC", True, True)
        database_clock.advance(SECOND)
    (first,) = (one["id"] for one in jobs(store) if one["state"] == "pending")
    assert reports.finish(start_of(first), "failed")
    (recovered,) = store.recover(10, ON_TIME)
    assert recovered.reason is None


def test_a_lost_job_that_turns_up_counts(store: BeatQueries, reports: WorkerQueries, database_clock: Clock) -> None:
    end(reports, "failed", "failed")
    late = job(reports)
    bury(store.database, late.job)
    database_clock.advance(SECOND)
    assert reports.start_lost(late, SILENCE)
    assert reports.finish(late, "failed")
    assert (3, True) == count(store.database)


@pytest.mark.parametrize(
    "change",
    [
        "delete from pgbeat.periodic_task",
        "update pgbeat.periodic_task set pause_after_failures = null",
        "update pgbeat.periodic_task set pause_after_failures = 4",
        "select pgbeat.pause('a', 'mine')",
        "update pgbeat.periodic_task set name = 'other'",
    ],
)
def test_a_pause_that_is_due_no_more_is_forgotten(store: BeatQueries, reports: WorkerQueries, change: str) -> None:
    end(reports, "failed", "failed", "failed")
    store.database.execute(change)

    assert [("a", None)] == store.pause_failing(10)

    assert [] == store.pause_failing(10)
    assert not store.look().failing
    reasons = store.database.execute("select pause_reason from pgbeat.periodic_task")
    assert [] == [row.pause_reason for row in reasons if row.pause_reason not in (None, "mine")]


def test_a_batch_of_locked_rows_does_not_keep_others_from_being_paused(
    store: BeatQueries, reports: WorkerQueries, migrated_database: str
) -> None:
    for name in ("b", "c"):
        insert(store, name, pause_after_failures=3)
    for name in "abc":
        end(reports, "failed", "failed", "failed", name=name)
    author = Transaction(migrated_database)
    author.execute("update pgbeat.periodic_task set subject = 'mine' where name in ('a', 'b')")

    assert ["c"] == [name for name, _ in at_once(lambda: store.pause_failing(1))]
    assert [] == at_once(lambda: store.pause_failing(1))
    assert store.look().failing
    assert is_due(store), "no submit passes it meanwhile"
    author.commit()

    assert ["a", "b"] == [name for name, _ in store.pause_failing(10)]
    assert not is_enabled(store)


# Nobody waits for an author


@pytest.mark.parametrize(
    "statement", ["finish", "finish_many", "finish_by_result", "end_unstarted", "end_unstarted_many"]
)
def test_an_end_waits_for_no_author(
    store: BeatQueries, reports: WorkerQueries, migrated_database: str, statement: str
) -> None:
    end(reports, "failed", "failed")
    author = Transaction(migrated_database)
    author.execute("select * from pgbeat.periodic_task for update")
    author.execute("update pgbeat.periodic_task set enabled = false")
    author.execute("update pgbeat.periodic_task set enabled = true")
    one = job(reports, tracking="result" if statement == "finish_by_result" else "full")

    at_once(
        {
            "finish": lambda: reports.finish(one, "failed"),
            "finish_many": lambda: reports.finish_many([Finish(one, "failed")]),
            "finish_by_result": lambda: store.finish_by_result([(one.job, "failed")]),
            "end_unstarted": lambda: reports.end_unstarted(one, "failed", "worker"),
            "end_unstarted_many": lambda: reports.end_unstarted_many([Unstarted(one, "failed", "worker")]),
        }[statement]
    )

    assert "failed" == state(store.database, one.job)
    assert (3, True) == count(store.database)
    assert [] == at_once(lambda: store.pause_failing(10))
    author.commit()
    assert [("a", None)] == store.pause_failing(10), "it was resumed, and what failed before that is of the past"
    assert is_enabled(store)
    end(reports, "failed")
    assert (1, False) == count(store.database)


def test_an_author_waits_for_no_end(store: BeatQueries, reports: WorkerQueries, migrated_database: str) -> None:
    end(reports, "failed", "failed")
    worker = Transaction(migrated_database)
    assert worker.reports.finish(job(reports), "failed")

    at_once(lambda: store.database.execute("update pgbeat.periodic_task set enabled = false"))
    at_once(lambda: store.database.execute("select pgbeat.resume('a')"))
    worker.commit()

    assert [("a", None)] == store.pause_failing(10)
    assert is_enabled(store)


def test_of_two_beats_one_pauses_and_the_other_does_nothing(
    store: BeatQueries, reports: WorkerQueries, migrated_database: str
) -> None:
    end(reports, "failed", "failed", "failed")
    other = Transaction(migrated_database)
    assert 1 == len(other.store("beat-b").pause_failing(10))

    assert [] == at_once(lambda: store.pause_failing(10))
    other.commit()

    assert [] == store.pause_failing(10)
    assert not is_enabled(store)


def test_ends_of_one_name_at_two_workers_are_both_counted(
    store: BeatQueries, reports: WorkerQueries, migrated_database: str
) -> None:
    """The second waits for the statement of the first, which is one round trip."""
    end(reports, "failed")
    first = Transaction(migrated_database)
    assert first.reports.finish(job(reports), "failed")
    second = job(reports)

    attempt = Attempt(lambda: reports.finish(second, "failed")).waits_for(first, store.database)
    first.commit()

    assert attempt.answer()
    assert (3, True) == count(store.database)


def test_a_row_made_anew_under_an_old_name_does_not_inherit_the_failures(
    store: BeatQueries, reports: WorkerQueries, database_clock: Clock
) -> None:
    end(reports, "failed", "failed")
    store.database.execute("delete from pgbeat.periodic_task where name = 'a'")
    database_clock.advance(SECOND)
    insert(store, "a", pause_after_failures=3)

    end(reports, "failed")

    assert [] == store.pause_failing(10)
    end(reports, "failed", "failed")
    assert ["a"] == [name for name, _ in store.pause_failing(10)]
