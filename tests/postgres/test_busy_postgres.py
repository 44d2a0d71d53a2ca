"""What a Postgres that is busy, full, read-only or going down says, for real, and how it is understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from tests.harness.role import Role
from tests.harness.ticks import LEASE, beat, decided, jobs, make_due, row_of, submit
from tests.harness.transactions import Attempt, Transaction


@pytest.fixture(params=["psycopg2", "psycopg"])
def store(role: Role, request: pytest.FixtureRequest) -> Iterator[BeatQueries]:
    """A beat's statements as that user; it connects with its first statement."""
    made = BeatQueries(Database(role.url(request.param)), "beat-a", LEASE)
    yield made
    made.database.close()


@pytest.fixture
def owner(migrated_database: str) -> Iterator[BeatQueries]:
    made = beat(migrated_database, "beat-b")
    yield made
    made.database.close()


@pytest.fixture
def other(migrated_database: str) -> Iterator[Transaction]:
    made = Transaction(migrated_database)
    yield made
    made.close()


def slow_down(owner: BeatQueries, table: str, seconds: float) -> None:
    """Make each change of a row of this table take so long."""
    owner.database.execute(
        "create function public.take_time() returns trigger language plpgsql as "
        f"'begin perform pg_sleep({seconds}); return new; end'"
    )
    owner.database.execute(
        f"create trigger take_time before insert or update on pgbeat.{table} "
        "for each row execute function public.take_time()"
    )


def test_a_statement_that_outlasts_the_user_s_time_out_may_pass_with_fewer_rows(
    role: Role, store: BeatQueries, owner: BeatQueries
) -> None:
    for number in range(20):
        make_due(owner, f"row-{number:02}")
    slow_down(owner, "periodic_task", 0.05)
    role.set("statement_timeout", "500ms")

    with pytest.raises(DatabaseBusy, match=r"canceling statement due to statement timeout\.$"):
        store.mark(20)  # of which it says nothing more: not the whole statement

    assert [None] * 20 == [row_of(owner, f"row-{number:02}")["marked_by"] for number in range(20)]
    assert 4 == len(store.mark(4))


def test_a_submit_that_is_cancelled_leaves_nothing_behind_and_may_be_sent_again(
    role: Role, store: BeatQueries, owner: BeatQueries
) -> None:
    make_due(owner, "a")
    rows = store.mark(10)
    slow_down(owner, "active_job", 1)
    role.set("statement_timeout", "200ms")
    store.database.close()

    with pytest.raises(DatabaseBusy):
        submit(store, rows)
    role.reset()
    store.database.close()

    assert [] == jobs(owner)
    assert {"a": True} == submit(store, rows)


def test_a_lock_that_is_not_to_be_had_in_time_is_waited_for_later(
    role: Role, store: BeatQueries, other: Transaction
) -> None:
    role.set("lock_timeout", "100ms")
    other.execute("lock table pgbeat.periodic_task in access exclusive mode")

    with pytest.raises(DatabaseBusy, match="canceling statement due to lock timeout"):
        store.look()
    other.commit()

    assert not store.look().due


def test_the_victim_of_a_deadlock_may_ask_again(
    role: Role, store: BeatQueries, owner: BeatQueries, other: Transaction
) -> None:
    make_due(owner, "a")
    rows = store.mark(10)
    submit(store, rows)
    job = decided(rows[0]).job
    assert job is not None
    other.execute("set deadlock_timeout = '60s'")  # ours looks after a second, so it is the one that gives way
    other.execute("lock table pgbeat.finished_job in access exclusive mode")
    confirming = Attempt(lambda: store.confirm([(job, 0.0)])).waits_for(other, owner.database)
    crossing = Attempt(lambda: other.execute("lock table pgbeat.active_job in access exclusive mode"))

    with pytest.raises(DatabaseBusy, match="deadlock detected"):
        confirming.answer()
    crossing.answer()
    other.commit()

    assert {job} == store.confirm([(job, 0.0)]).jobs


def test_a_serialisation_failure_may_pass(
    role: Role, store: BeatQueries, owner: BeatQueries, other: Transaction
) -> None:
    role.set("default_transaction_isolation", "repeatable read")
    other.store().announce_node("host", 1, "1.0")
    announcing = Attempt(lambda: store.announce_node("host", 1, "1.0")).waits_for(other, owner.database)
    other.commit()

    with pytest.raises(DatabaseBusy, match="could not serialize access"):
        announcing.answer()
    store.announce_node("host", 1, "1.0")


def test_a_full_disk_is_waited_out(store: BeatQueries, owner: BeatQueries) -> None:
    make_due(owner, "a")
    rows = store.mark(10)
    owner.database.execute(
        "create function public.be_full() returns trigger language plpgsql as "
        "$$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$"
    )
    owner.database.execute(
        "create trigger be_full before insert on pgbeat.active_job for each row execute function public.be_full()"
    )

    with pytest.raises(DatabaseUnavailable, match="No space left on device"):
        submit(store, rows)
    owner.database.execute("drop trigger be_full on pgbeat.active_job")

    assert {"a": True} == submit(store, rows)


def test_a_user_at_the_connection_limit_waits(role: Role, store: BeatQueries) -> None:
    role.limit(0)
    with pytest.raises(DatabaseUnavailable, match="too many connections for role"):
        store.look()
    role.reset()

    assert not store.look().due


def test_a_server_that_is_read_only_is_waited_out(role: Role, store: BeatQueries, owner: BeatQueries) -> None:
    make_due(owner, "a")
    role.set("default_transaction_read_only", "on")
    assert store.look().due
    with pytest.raises(DatabaseUnavailable, match="read-only transaction"):
        store.mark(10)
    role.reset()
    store.database.close()

    assert ["a"] == [row.name for row in store.mark(10)]


@pytest.mark.parametrize("ask", [BeatQueries.look, lambda store: store.mark(10)], ids=["look", "mark"])
def test_a_connection_that_the_server_has_ended_is_made_anew(
    role: Role, store: BeatQueries, ask: Callable[[BeatQueries], Any]
) -> None:
    before = ask(store)
    role.disconnect()
    with pytest.raises(DatabaseUnavailable):
        ask(store)

    assert type(before) is type(ask(store))


def test_of_two_connections_that_the_server_has_ended_one_finds_out(role: Role, store: BeatQueries) -> None:
    connections = [store.database.engine.raw_connection() for _ in range(2)]
    for connection in connections:
        connection.close()
    role.disconnect()

    with pytest.raises(DatabaseUnavailable):
        store.mark(10)

    assert [] == store.mark(10) == store.mark(10)


def test_a_connection_that_the_server_ends_in_a_statement_leaves_it_done_or_not_done(
    role: Role, store: BeatQueries, owner: BeatQueries, other: Transaction
) -> None:
    make_due(owner, "a")
    other.execute("lock table pgbeat.periodic_task in access exclusive mode")
    marking = Attempt(lambda: store.mark(10)).waits_for(other, owner.database)
    role.disconnect()
    with pytest.raises(DatabaseUnavailable):
        marking.answer()
    other.commit()

    assert ["a"] == [row.name for row in store.mark(10)]
