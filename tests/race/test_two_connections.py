"""Races on two real connections: who holds what, who waits, who does nothing."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg2
import pytest

from celery_pgbeat.postgres.engine import normalise_url
from tests.harness.ticks import beat, insert, jobs, make_due, row_of, submit

PATIENCE = 5.0  # seconds; a statement that waits for a lock of these tests would wait for ever


def connect(url: str) -> Any:
    return psycopg2.connect(normalise_url(url).set(drivername="postgresql").render_as_string(hide_password=False))


def within(seconds: float, function: Any) -> Any:
    """Return the function's answer, or fail if it waits: run in a thread, so that a lock cannot hang the test."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(function()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert answers, "the statement waited for somebody's lock"
    return answers[0]


def hundred_due(url: str) -> Any:
    store = beat(url)
    for number in range(100):
        make_due(store, f"row-{number:03}")
    return store


def test_of_two_beats_that_mark_at_the_same_moment_each_row_has_one(migrated_database: str) -> None:
    stores = [beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")]
    for number in range(200):
        make_due(stores[0], f"row-{number:03}")
    won: list[list[str]] = [[], []]
    barrier = threading.Barrier(2)

    def mark(which: int) -> None:
        barrier.wait()
        for _ in range(300):
            won[which] += [row.name for row in stores[which].mark(1)]

    threads = [threading.Thread(target=mark, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {1} == set(Counter(won[0] + won[1]).values())
    assert len(won[0]) + len(won[1]) == 200
    assert won[0]
    assert won[1]


def test_a_mark_committed_after_a_statement_took_its_time_is_not_stolen(migrated_database: str) -> None:
    """The later mark lies in the future of the earlier statement, but only just: it is no clock set back."""
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    make_due(first, "a")
    blocker = connect(migrated_database)
    cursor = blocker.cursor()
    # beat-b's statement takes its time and its snapshot, then is held up before it reaches the row.
    cursor.execute("lock table pgbeat.periodic_task in access exclusive mode")
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(second.mark(10)))
    thread.start()
    waiting = connect(migrated_database)
    waiting.autocommit = True
    probe = waiting.cursor()
    for _ in range(500):
        probe.execute(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%%.mark(%%'"
        )
        if probe.fetchone()[0]:
            break
    else:
        raise AssertionError("beat-b's mark does not wait for the lock")
    # beat-a's mark, made meanwhile by the holder of the lock, is later than beat-b's statement.
    cursor.execute("update pgbeat.periodic_task set marked_by = 'beat-a', marked_at = clock_timestamp()")
    blocker.commit()
    thread.join(PATIENCE)

    assert answers == [[]]
    assert row_of(first, "a")["marked_by"] == "beat-a"


@pytest.mark.parametrize(
    "statement",
    [
        "select pgbeat.trigger('row-050')",
        "update pgbeat.periodic_task set args = '[1]' where name = 'row-050'",
        "delete from pgbeat.periodic_task where name = 'row-050'",
    ],
)
def test_an_open_transaction_on_one_row_delays_that_row_and_no_other(migrated_database: str, statement: str) -> None:
    store = hundred_due(migrated_database)
    caller = connect(migrated_database)
    caller.cursor().execute(statement)

    rows = within(PATIENCE, lambda: store.mark(1000))
    made = within(PATIENCE, lambda: submit(store, rows))

    assert sum(made.values()) == 99
    assert "row-050" not in made
    caller.rollback()
    assert submit(store, store.mark(1000)) == {"row-050": True}


@pytest.mark.parametrize(
    "statement",
    ["select pgbeat.trigger('row-050')", "update pgbeat.periodic_task set args = '[1]' where name = 'row-050'"],
)
def test_a_transaction_opened_between_mark_and_submit_delays_that_row_and_no_other(
    migrated_database: str, statement: str
) -> None:
    store = hundred_due(migrated_database)
    rows = store.mark(1000)
    caller = connect(migrated_database)
    caller.cursor().execute(statement)

    made = within(PATIENCE, lambda: submit(store, rows))

    assert sum(made.values()) == 99
    assert {"row-050"} == within(PATIENCE, lambda: store.still_marked([row.name for row in rows]))
    caller.commit()
    assert submit(store, [row for row in rows if row.name == "row-050"]) == {}


def test_a_row_that_another_table_refers_to_can_be_marked_while_that_is_inserted(migrated_database: str) -> None:
    store = beat(migrated_database)
    make_due(store, "a")
    store.database.execute("create table public.owner (task text references pgbeat.periodic_task (name))")
    caller = connect(migrated_database)
    caller.cursor().execute("insert into public.owner values ('a')")

    rows = within(PATIENCE, lambda: store.mark(10))

    assert [row.name for row in rows] == ["a"]
    assert within(PATIENCE, lambda: submit(store, rows)) == {"a": True}


def test_of_twenty_triggers_of_an_idle_row_at_once_one_gets_a_job(migrated_database: str) -> None:
    store = beat(migrated_database)
    insert(store, "a")
    barrier = threading.Barrier(20)
    answers: list[str] = []

    def trigger() -> None:
        connection = connect(migrated_database)
        connection.autocommit = True
        barrier.wait()
        try:
            connection.cursor().execute("select pgbeat.trigger('a')")
            answers.append("made")
        except psycopg2.Error as error:
            answers.append(error.pgcode)
        finally:
            connection.close()

    threads = [threading.Thread(target=trigger) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert Counter(["made"] + ["55006"] * 19) == Counter(answers)
    assert len(jobs(store)) == 1


def test_two_beats_that_recover_at_once_take_each_job_once(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    for number in range(50):
        make_due(first, f"row-{number}")
    submit(first, first.mark(1000))
    first.give_back()
    taken: list[str] = []
    barrier = threading.Barrier(2)

    def recover(store: Any) -> None:
        barrier.wait()
        for _ in range(60):
            taken.extend(job.periodic_task for job in store.recover(1, timedelta(seconds=32)))

    threads = [threading.Thread(target=recover, args=(store,)) for store in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {1} == set(Counter(taken).values())
    assert len(taken) == 50
