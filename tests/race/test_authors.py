"""What a person's open transaction may delay: the row that it has written to, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from celery_pgbeat.planning import Postponed
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.jobs import bury
from tests.harness.ticks import HOUR, beat, decided, insert, jobs, make_due, planned, row_of, submit
from tests.harness.transactions import Attempt, Transaction, at_once
from tests.harness.wait import eventually

WRITES = "update pgbeat.periodic_task set args = '[1]' where name = 'held'"
Open = Callable[[], Transaction]


@pytest.fixture
def author(migrated_database: str) -> Iterator[Transaction]:
    made = Transaction(migrated_database)
    yield made
    made.close()


def test_a_locked_row_is_not_postponed_and_the_others_are(store: BeatQueries, author: Transaction) -> None:
    make_due(store, "free")
    make_due(store, "held")
    rows = store.mark(10)
    author.execute(WRITES)
    answers = [Postponed(row=row, planned_for=row.next_run_at, next_run_at=row.next_run_at + HOUR) for row in rows]

    assert ["free"] == at_once(lambda: store.postpone(answers))
    author.commit()

    assert [] == store.postpone(answers)
    assert ["held"] == [row.name for row in store.mark(10)]


def test_a_locked_row_is_not_planned_and_the_others_are(store: BeatQueries, author: Transaction) -> None:
    insert(store, "free")
    insert(store, "held")
    rows = store.unplanned(10)
    author.execute(WRITES)
    answers = [planned(row, row.planned_from + HOUR) for row in rows]

    assert ["free"] == [name for name, _, _ in at_once(lambda: store.plan(answers, "UTC"))]
    author.commit()

    assert [] == store.plan(answers, "UTC")
    assert ["held"] == [row.name for row in store.unplanned(10)]


def test_a_row_that_is_written_to_reports_its_problem_later_and_the_others_do_now(
    store: BeatQueries, author: Transaction
) -> None:
    make_due(store, "free")
    make_due(store, "held")
    rows = store.mark(10)
    author.execute(WRITES)

    assert ["free"] == at_once(lambda: store.report_problem([(row, "wrong") for row in rows]))
    author.commit()

    assert (None, None) == (row_of(store, "held")["problem"], row_of(store, "held")["marked_by"])


def test_a_row_that_is_written_to_keeps_no_beat_from_stopping(store: BeatQueries, author: Transaction) -> None:
    make_due(store, "free")
    make_due(store, "held")
    store.mark(10)
    author.execute(WRITES)

    assert 1 == at_once(store.unmark)
    author.rollback()

    assert (None, "beat-a") == (row_of(store, "free")["marked_by"], row_of(store, "held")["marked_by"])


def test_a_row_that_is_written_to_keeps_no_beat_from_starting(
    store: BeatQueries, author: Transaction, migrated_database: str
) -> None:
    """The new life of a dead beat frees what that has marked; what it cannot free has to wait for the lease."""
    make_due(store, "free")
    make_due(store, "held")
    store.mark(10)
    author.execute(WRITES)
    reborn = beat(migrated_database, "beat-b")

    assert (1, 0) == at_once(lambda: reborn.clear_dead_beats(["beat-a"]))
    assert ["free"] == [row.name for row in reborn.mark(10)]
    author.rollback()

    assert "beat-a" == row_of(store, "held")["marked_by"]


def test_a_window_that_is_changed_keeps_what_uses_it_from_being_submitted_and_nothing_else(
    store: BeatQueries, author: Transaction
) -> None:
    store.database.execute("insert into pgbeat.blackout values ('night', array['0 2 * * * PT1H'])")
    make_due(store, "free")
    make_due(store, "held", blackout=None)
    store.database.execute("update pgbeat.periodic_task set blackout = array['window: night'] where name = 'held'")
    store.database.execute("update pgbeat.periodic_task set next_run_at = now() where name = 'held'")
    rows = store.mark(10)
    author.execute("update pgbeat.blackout set windows = array['0 0 * * * PT5H']")

    assert {"free": True} == at_once(lambda: submit(store, rows))
    assert {"held"} == store.still_marked(["free", "held"])
    author.commit()

    assert {} == submit(store, [row for row in rows if row.name == "held"])
    assert ["held"] == [row.name for row in store.unplanned(10)]


def test_a_window_is_changed_after_the_submit_that_is_under_way(
    store: BeatQueries, author: Transaction, migrated_database: str
) -> None:
    store.database.execute("insert into pgbeat.blackout values ('night', array['0 2 * * * PT1H'])")
    make_due(store, "a")
    store.database.execute("update pgbeat.periodic_task set blackout = array['window: night']")
    store.database.execute("update pgbeat.periodic_task set next_run_at = now()")
    (row,) = store.mark(10)
    assert {"a": True} == submit(author.store(), [row])
    change = "update pgbeat.blackout set windows = array['0 0 * * * PT5H'] returning name"

    changing = Attempt(lambda: store.database.execute(change)).waits_for(author, store.database)
    author.commit()
    changing.answer()

    assert ["pending"] == [job["state"] for job in jobs(store)]
    assert ["a"] == [row.name for row in store.unplanned(10)]
    assert row.next_run_at == row_of(store, "a")["last_run_at"]


def test_a_lost_job_that_turns_up_does_not_wait_for_an_open_trigger(store: BeatQueries, author: Transaction) -> None:
    make_due(store, "a")
    (row,) = store.mark(10)
    submit(store, [row])
    job = decided(row).job
    assert job is not None
    store.confirm([(job, 0.0)])
    bury(store.database, job)
    author.execute("select pgbeat.trigger('a')")
    start = Start(job, 0, 0, uuid.uuid4(), "worker")

    assert not at_once(lambda: WorkerQueries(store.database).start_lost(start, timedelta(seconds=30)))
    author.commit()

    assert ["lost", "pending"] == [found["state"] for found in jobs(store)]


def test_what_was_decided_while_an_author_waited_for_the_row_is_not_decided_again(
    store: BeatQueries, author: Transaction, migrated_database: str
) -> None:
    """The author's statement began before the occurrence and got the lock after it: its own time is too early."""
    insert(store, "held", schedule="* * * * * *")
    (row,) = store.unplanned(10)
    soon = store.database.execute("select pgbeat.now() + interval '1 second'")[0][0]
    store.plan([planned(row, soon)], "UTC")
    submitter = Transaction(migrated_database)
    submitter.execute("select from pgbeat.periodic_task for no key update")
    change = "update pgbeat.periodic_task set schedule = '*/1 * * * * *'"
    attempt = Attempt(lambda: author.execute(change)).waits_for(submitter, store.database)
    eventually(lambda: store.database.execute(f"select 1 where pgbeat.now() > '{soon}'"), 10, "the occurrence's time")
    (due,) = submitter.store().mark(10)
    submitter.store().submit([decided(due)], "UTC", True, True)

    submitter.commit()
    attempt.answer()
    author.commit()

    (edited,) = store.unplanned(10)
    assert soon == row_of(store, "held")["last_run_at"] == edited.planned_from
    assert row_of(store, "held")["decided_anew_at"] is None
