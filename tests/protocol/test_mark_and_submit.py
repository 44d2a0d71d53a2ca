"""The two hot statements: who may mark, what a submit does, and what it leaves alone."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import pytest
from sqlalchemy.exc import DBAPIError, OperationalError

from celery_pgbeat.planning import Due, Skipped, Unplanned
from celery_pgbeat.postgres.database import Database, sqlstate
from celery_pgbeat.postgres.durations import UNIT
from celery_pgbeat.postgres.statements import statement
from tests.harness.jobs import make_job
from tests.harness.ticks import HOUR, beat, decided, insert, jobs, make_due, row_of, submit
from tests.harness.transactions import Transaction


def test_a_due_row_is_marked_with_the_beat_and_the_time(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")

    (row,) = store.mark(10)

    stored = row_of(store, "a")
    assert stored["marked_by"] == "beat-a"
    assert row.marked_at == stored["marked_at"]
    assert abs(row.marked_at - row.now) < timedelta(seconds=1)


def test_what_planning_reads_comes_in_the_order_of_its_fields(migrated_database: str) -> None:
    database = Database(migrated_database)
    mark = {"beat": "beat-a", "lease": 15.0, "batch": 1, "fresh": 0, "lazy_names": "{}"}
    mark |= {"closed_queues": "{}", "closed_tasks": "{}"}
    make_due(beat(migrated_database), "due")
    insert(beat(migrated_database), "unplanned", next_run_at=None)

    (marked,) = database.execute(statement("mark", "pgbeat"), mark)
    (unplanned,) = database.run("unplanned", batch=1, after="")

    for shape, row in ((Due, marked), (Unplanned, unplanned)):
        assert [field.name for field in fields(shape)] == [column.removesuffix(UNIT) for column in row._fields]


def test_a_marked_row_is_not_marked_again_while_the_lease_holds(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    make_due(first, "a")

    assert [row.name for row in first.mark(10)] == ["a"]
    assert second.mark(10) == []
    assert not second.look().due


def test_a_lapsed_mark_is_taken_over_by_another_beat_and_says_so(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    make_due(first, "a")
    (before,) = first.mark(10)
    first.database.execute("update pgbeat.periodic_task set marked_at = marked_at - interval '16 seconds'")

    assert second.look().due
    (after,) = second.mark(10)

    assert after.taken_over
    assert not before.taken_over
    assert before.next_run_at == after.next_run_at


def test_a_mark_from_the_far_future_counts_as_none_and_one_from_the_near_future_stands(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    make_due(first, "a")
    first.mark(10)

    first.database.execute("update pgbeat.periodic_task set marked_at = statement_timestamp() + interval '5 seconds'")
    assert second.mark(10) == []

    first.database.execute("update pgbeat.periodic_task set marked_at = statement_timestamp() + interval '1 hour'")
    assert [row.name for row in second.mark(10)] == ["a"]


def test_the_longest_due_are_marked_first(migrated_database: str) -> None:
    store = beat(migrated_database)
    for age in (3, 1, 2):
        insert(store, f"due-{age}", next_run_at="2026-01-01T00:00:00Z")
        store.database.execute(
            "update pgbeat.periodic_task set next_run_at = statement_timestamp() - make_interval(secs => %(age)s) "
            "where name = %(name)s",
            {"age": age, "name": f"due-{age}"},
        )

    assert [row.name for row in store.mark(2)] == ["due-3", "due-2"]
    assert [row.name for row in store.mark(2)] == ["due-1"]


def test_a_submit_makes_the_job_moves_the_row_on_and_takes_the_mark_off(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a", args=[1], queue="q2")
    (row,) = store.mark(10)

    assert submit(store, [row]) == {"a": True}

    stored = row_of(store, "a")
    assert row.next_run_at + HOUR == stored["next_run_at"] == stored["planned_for"]
    assert row.next_run_at == stored["last_run_at"]
    assert (
        stored["run_count"],
        stored["marked_by"],
        stored["marked_at"],
        stored["timezone"],
    ) == (1, None, None, "UTC")
    (job,) = jobs(store)
    assert ("pending", "a", "q2", row.next_run_at, "schedule") == (
        job["state"],
        job["periodic_task"],
        job["queue"],
        job["scheduled_for"],
        job["origin"],
    )


def test_a_submit_under_another_mark_changes_nothing(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    make_due(first, "a")
    late = first.mark(10)
    first.database.execute("update pgbeat.periodic_task set marked_at = marked_at - interval '16 seconds'")
    taken = second.mark(10)

    assert submit(first, late) == {}
    assert submit(second, taken) == {"a": True}
    assert len(jobs(first)) == 1


def test_a_submit_under_an_earlier_mark_of_the_same_beat_changes_nothing(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    abandoned = store.mark(10)
    store.database.execute("update pgbeat.periodic_task set marked_at = marked_at - interval '16 seconds'")
    again = store.mark(10)

    assert submit(store, abandoned) == {}
    assert submit(store, again) == {"a": True}


def test_an_edit_a_pause_or_a_new_next_run_between_mark_and_submit_wins(migrated_database: str) -> None:
    store = beat(migrated_database)
    changes = {
        "edited": "args = '[2]'",
        "paused": "enabled = false",
        "moved": "next_run_at = next_run_at + interval '1 day'",
    }
    for name in changes:
        make_due(store, name)
    rows = store.mark(10)
    for name, change in changes.items():
        store.database.execute(f"update pgbeat.periodic_task set {change} where name = %(name)s", {"name": name})

    assert submit(store, rows) == {}
    assert jobs(store) == []
    assert [row.name for row in store.mark(10)] == ["edited"]


def test_a_row_that_is_deleted_between_mark_and_submit_is_submitted_no_more_and_the_others_are(
    migrated_database: str,
) -> None:
    store = beat(migrated_database)
    for name in ("gone", "kept"):
        make_due(store, name)
    rows = store.mark(10)
    store.database.execute("delete from pgbeat.periodic_task where name = 'gone'")

    assert {"kept": True} == submit(store, rows)
    assert {"kept"} == {job["periodic_task"] for job in jobs(store)}
    assert set() == store.still_marked(["gone"])
    assert [] == store.report_problem([(row, "wrong") for row in rows if row.name == "gone"])


def test_a_row_that_is_deleted_and_made_anew_under_its_name_is_not_the_one_that_was_marked(
    migrated_database: str,
) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    rows = store.mark(10)
    store.database.execute("delete from pgbeat.periodic_task")
    make_due(store, "a")

    assert {} == submit(store, rows)
    assert {"a": True} == submit(store, store.mark(10))
    assert {decided(rows[0]).job}.isdisjoint({job["id"] for job in jobs(store)})


def test_the_same_occurrence_is_never_decided_twice(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a", overlap="allow")
    (row,) = store.mark(10)
    submit(store, [row])
    store.database.execute(
        "update pgbeat.periodic_task set next_run_at = %(instant)s where name = 'a'", {"instant": row.next_run_at}
    )
    (again,) = store.mark(10)

    assert submit(store, [again]) == {}
    assert len(jobs(store)) == 1


def test_a_tick_that_finds_a_job_in_the_way_is_recorded_with_that_job(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    submit(store, store.mark(10))
    store.database.execute("update pgbeat.periodic_task set next_run_at = statement_timestamp()")
    (row,) = store.mark(10)

    assert submit(store, [row]) == {"a": False}

    made, skipped = jobs(store)
    assert ("skipped", "overlap", made["id"]) == (skipped["state"], skipped["reason"], skipped["blocked_by"])
    assert row_of(store, "a")["next_run_at"] > row.next_run_at
    assert row_of(store, "a")["run_count"] == 1


def test_a_skipped_occurrence_is_no_reason_to_look_where_no_task_comes_after_it(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    make_job(store.database, periodic_task="a")

    assert {"a": False} == submit(store, store.mark(10))

    assert [] == store.database.execute("select upstream from pgbeat.dependency_to_check")


def test_an_occurrence_whose_job_is_there_already_is_recorded_with_it(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a", overlap="allow")
    (row,) = store.mark(10)
    decision = decided(row)
    make_job(store.database, id=str(decision.job), periodic_task="a")

    (answer,) = store.submit([decision], "UTC", True, True)

    assert (False, "overlap", decision.job) == (answer.made, answer.reason, answer.blocked_by)


def test_a_locked_row_is_skipped_and_the_others_are_submitted(migrated_database: str) -> None:
    store = beat(migrated_database)
    for name in ("blocked", "free", "locked"):
        make_due(store, name)
    make_job(store.database, periodic_task="blocked")
    rows = store.mark(10)
    other = Transaction(migrated_database)
    other.execute("select from pgbeat.periodic_task where name = 'locked' for update")

    assert {"free": True, "blocked": False} == submit(store, rows)
    other.rollback()

    assert {"locked"} == store.still_marked(["blocked", "free", "locked"])


def test_each_non_final_state_blocks_and_each_final_state_frees(migrated_database: str) -> None:
    store = beat(migrated_database)
    for state in ("pending", "sent", "running", "retrying"):
        make_due(store, state)
        submit(store, store.mark(10))
        store.database.execute(
            "update pgbeat.active_job set state = %(state)s where periodic_task = %(state)s", {"state": state}
        )
        store.database.execute(
            "update pgbeat.periodic_task set next_run_at = statement_timestamp() where name = %(name)s", {"name": state}
        )
        assert {state: False} == submit(store, store.mark(10))
    for state in ("succeeded", "failed", "revoked", "expired", "lost"):
        make_due(store, state)
        submit(store, store.mark(10))
        store.database.execute("delete from pgbeat.active_job where periodic_task = %(name)s", {"name": state})
        store.database.execute(
            "update pgbeat.periodic_task set next_run_at = statement_timestamp() where name = %(name)s", {"name": state}
        )
        assert {state: True} == submit(store, store.mark(10))


def test_jobs_of_a_row_that_allows_overlap_stand_beside_each_other(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a", overlap="allow")
    for _ in range(3):
        assert submit(store, store.mark(10)) == {"a": True}
        store.database.execute("update pgbeat.periodic_task set next_run_at = statement_timestamp()")

    assert len(jobs(store)) == 3


def test_jobs_that_overlapped_once_block_when_the_row_no_longer_allows_it(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a", overlap="allow")
    submit(store, store.mark(10))
    store.database.execute("update pgbeat.periodic_task set overlap = 'skip', next_run_at = statement_timestamp()")

    assert submit(store, store.mark(10)) == {"a": False}


def test_a_lapsed_job_gives_way_in_the_very_statement_that_submits_the_next_tick(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    submit(store, store.mark(10))
    store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', state = 'running', started_at = statement_timestamp(), "
        "busy_until = statement_timestamp() - interval '1 second'"
    )
    store.database.execute("update pgbeat.periodic_task set next_run_at = statement_timestamp()")

    assert submit(store, store.mark(10)) == {"a": True}

    assert sorted(job["state"] for job in jobs(store)) == ["lost", "pending"]


def test_a_lapsed_job_stays_in_the_way_of_a_beat_that_may_not_judge_yet(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    submit(store, store.mark(10))
    store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', "
        "state = 'running', busy_until = statement_timestamp() - interval '1 second'"
    )
    store.database.execute("update pgbeat.periodic_task set next_run_at = statement_timestamp()")

    assert submit(store, store.mark(10), judging=False) == {"a": False}


def test_a_submit_never_gives_up_what_recover_can_still_mend(migrated_database: str) -> None:
    store = beat(migrated_database)
    mendable = {
        "unsent": "state = 'pending'",
        "unpicked": "state = 'sent', resends = 2",
        "rerunnable": "state = 'running', on_lost = 'rerun'",
        "retry-lost": "state = 'retrying', on_lost = 'rerun'",
    }
    for name, change in mendable.items():
        make_due(store, name)
        submit(store, store.mark(10))
        store.database.execute(
            "update pgbeat.active_job set check_at = 'epoch', "
            f"{change}, busy_until = statement_timestamp() - interval '1 second' "
            "where periodic_task = %(name)s",
            {"name": name},
        )
    store.database.execute("update pgbeat.periodic_task set next_run_at = statement_timestamp()")

    assert dict.fromkeys(mendable, False) == submit(store, store.mark(10))


def test_occurrences_that_were_passed_over_are_one_counted_row(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    (row,) = store.mark(10)
    passed = Skipped(row.next_run_at - 71 * HOUR, row.next_run_at - HOUR, 71, "too_late")

    store.submit([decided(row, skipped=passed)], "UTC", True, True)

    skipped, made = jobs(store)
    assert ("skipped", "too_late", 71, passed.first, passed.last) == (
        skipped["state"],
        skipped["reason"],
        skipped["occurrences"],
        skipped["scheduled_for"],
        skipped["last_scheduled_for"],
    )
    assert made["state"] == "pending"


def test_a_row_stops_after_max_runs_submitted_runs(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a", max_runs=2, overlap="allow")
    submit(store, store.mark(10))
    assert row_of(store, "a")["next_run_at"] is not None
    store.database.execute("update pgbeat.periodic_task set next_run_at = statement_timestamp()")
    submit(store, store.mark(10))

    assert row_of(store, "a")["next_run_at"] is None


def test_another_schema_in_the_same_database_sees_nothing_of_ours(database: str) -> None:
    from celery_pgbeat.postgres.beat_queries import BeatQueries
    from celery_pgbeat.postgres.migrate import migrate

    ours, theirs = Database(database, "pgbeat"), Database(database, "jobs")
    migrate(ours.engine, "pgbeat")
    migrate(theirs.engine, "jobs")
    make_due(BeatQueries(ours, "beat-a", timedelta(seconds=15)), "a")

    assert BeatQueries(theirs, "beat-b", timedelta(seconds=15)).mark(10) == []


def test_a_mark_is_judged_by_the_lease_of_the_beat_that_made_it(migrated_database: str) -> None:
    patient = beat(migrated_database, "beat-a", timedelta(seconds=60))
    hasty = beat(migrated_database, "beat-b", timedelta(seconds=1))
    make_due(patient, "a")
    rows = patient.mark(10)
    patient.database.execute("update pgbeat.periodic_task set marked_at = marked_at - interval '30 seconds'")

    assert not hasty.look().due
    assert [] == hasty.mark(10)
    patient.database.execute("update pgbeat.periodic_task set marked_at = marked_at + interval '30 seconds'")
    submit(patient, rows)
    patient.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', marked_at = marked_at - interval '30 seconds'"
    )
    assert [] == hasty.recover(10, timedelta(seconds=32))


@pytest.mark.parametrize(
    "column",
    [
        "catchup_window = '5000000 years'",
        "max_run_time = '293000 years'",
        "max_run_time = '2 years'",
        "created_at = '20000-01-01'",
        "created_at = 'infinity'",
        "next_run_at = 'infinity'",
        "last_run_at = '-infinity'",
        "run_count = 2147483647",
    ],
)
def test_p6_a_value_that_would_break_the_batch_it_is_marked_in_is_refused(migrated_database: str, column: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")

    with pytest.raises(DBAPIError, match=r"in_range|must be at most|outside the years"):
        store.database.execute(f"update pgbeat.periodic_task set {column}")


def test_rows_that_a_beat_gives_back_can_be_marked_at_once_and_the_others_stay_marked(migrated_database: str) -> None:
    store, other = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    for name in ("a", "b", "c"):
        make_due(store, name)
    store.mark(10)

    assert 2 == store.unmark(["b", "c"])

    assert ["b", "c"] == sorted(row.name for row in other.mark(10))
    assert 0 == store.unmark(["b"]), "a mark of another beat is not taken off"


def test_locked_rows_do_not_keep_later_unplanned_rows_from_being_read(migrated_database: str) -> None:
    store = beat(migrated_database)
    for name in ("a", "b", "c"):
        insert(store, name)

    assert ["a", "b"] == [row.name for row in store.unplanned(2)]
    assert ["c"] == [row.name for row in store.unplanned(2, "b")]


def test_a_row_is_not_renamed_while_a_job_of_its_name_is_not_final(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    submit(store, store.mark(10))

    with pytest.raises(OperationalError, match="is not final") as refused:
        store.database.execute("update pgbeat.periodic_task set name = 'b'")
    assert "55006" == sqlstate(refused.value.orig)
    store.database.execute("delete from pgbeat.active_job")
    store.database.execute("update pgbeat.periodic_task set name = 'b'")
