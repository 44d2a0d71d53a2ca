"""Waiting for a notification: who ends it, and how often."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
from sqlalchemy.engine import make_url

from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.listen import Bell
from tests.harness.pgbouncer import PgBouncer
from tests.store.session import Session


@pytest.fixture
def bell(migrated_database: str) -> Iterator[Bell]:
    made = Bell(Database(migrated_database))
    made.wait(0)
    yield made
    made.close()
    made.database.close()


@pytest.fixture
def session(migrated_database: str) -> Session:
    return Session(migrated_database)


def waited(bell: Bell, seconds: float) -> float:
    started = time.monotonic()
    bell.wait(seconds)
    return time.monotonic() - started


def test_a_notification_ends_the_wait_and_silence_does_not(bell: Bell, session: Session) -> None:
    assert not bell.wait(0.1)
    session.rows("notify pgbeat")
    assert waited(bell, 5) < 1


def test_who_begins_to_listen_does_not_wait_for_what_was_said_before(migrated_database: str) -> None:
    bell = Bell(Database(migrated_database))

    assert bell.wait(5)
    assert not bell.wait(0.1)
    bell.close()
    bell.database.close()


def test_another_thread_ends_the_wait(bell: Bell) -> None:
    threading.Timer(0.1, bell.ring).start()
    assert waited(bell, 5) < 1


def test_a_storm_of_notifications_is_heeded_a_few_times(bell: Bell, session: Session) -> None:
    stop = threading.Event()

    def storm() -> None:
        while not stop.is_set():
            session.rows("notify pgbeat")

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        until, heeded = time.monotonic() + 1, 0
        while time.monotonic() < until:
            heeded += bell.wait(1)
    finally:
        stop.set()
        thread.join()

    assert 2 <= heeded <= 25


def test_a_ring_ends_the_wait_in_a_storm_too(bell: Bell, session: Session) -> None:
    session.rows("notify pgbeat")
    bell.wait(1)
    session.rows("notify pgbeat")
    bell.ring()

    assert waited(bell, 5) < 0.04


def test_a_lost_listening_connection_is_made_anew(bell: Bell, session: Session) -> None:
    session.rows("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'")
    bell.wait(1)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not session.rows(
        "select pid from pg_stat_activity where query like 'listen%' and pid <> pg_backend_pid()"
    ):
        bell.wait(0.1)

    session.rows("notify pgbeat")
    assert waited(bell, 5) < 1


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_behind_a_pooler_nothing_listens_and_that_is_said_once(
    migrated_database: str, pgbouncer: PgBouncer, driver: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="celery_pgbeat.postgres.listen")
    url = make_url(pgbouncer.url).set(drivername=f"postgresql+{driver}")
    bell = Bell(Database(url.render_as_string(hide_password=False)))
    session = Session(migrated_database)
    for _ in range(2):
        assert not bell.wait(0.1)

    with closing(psycopg2.connect(pgbouncer.url)) as bystander:
        bystander.autocommit = True
        for _ in range(10 * pgbouncer.pool_size):  # each server connection of the pool in turn
            session.rows("notify pgbeat")
            with bystander.cursor() as cursor:
                cursor.execute("select 1")
        assert [] == bystander.notifies
    assert ["Not listening, polling only: there is a pooler before Postgres"] == caplog.messages
    bell.close()
    bell.database.close()
