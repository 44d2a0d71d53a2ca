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

from celery_pgbeat.postgres import listen
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.listen import Wakeup
from tests.harness.pgbouncer import PgBouncer
from tests.harness.session import Session
from tests.harness.wait import eventually


@pytest.fixture
def wakeup(migrated_database: str) -> Iterator[Wakeup]:
    made = Wakeup(Database(migrated_database))
    made.wait(0)
    yield made
    made.close()
    made.database.close()


def waited(wakeup: Wakeup, seconds: float) -> float:
    started = time.monotonic()
    wakeup.wait(seconds)
    return time.monotonic() - started


def test_a_notification_ends_the_wait_and_silence_does_not(wakeup: Wakeup, session: Session) -> None:
    assert not wakeup.wait(0.1)
    session.rows("notify pgbeat")
    assert waited(wakeup, 5) < 1


def test_a_beat_that_begins_to_listen_does_not_wait_for_earlier_notifications(migrated_database: str) -> None:
    wakeup = Wakeup(Database(migrated_database))

    assert wakeup.wait(5)
    assert not wakeup.wait(0.1)
    wakeup.close()
    wakeup.database.close()


def listeners(session: Session) -> int:
    query = "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen%'"
    return int(session.value(query))


def test_a_listener_takes_no_connection_that_statements_use(migrated_database: str, session: Session) -> None:
    wakeup = Wakeup(Database(migrated_database))
    wakeup.database.execute("select 1")
    (before,) = wakeup.database.execute("select pg_backend_pid()")

    assert wakeup.wait(0)
    assert [before] == wakeup.database.execute("select pg_backend_pid()")
    assert 1 == listeners(session)
    wakeup.close()
    wakeup.database.close()


def test_a_paused_listener_has_no_connection_until_the_pause_is_over(wakeup: Wakeup, session: Session) -> None:
    assert 1 == listeners(session)
    wakeup.pause(3600)
    eventually(lambda: listeners(session) == 0, 5, "its connection is closed")
    assert not wakeup.wait(0.05)
    assert 0 == listeners(session)

    wakeup._retry_at = 0.0  # the pause is over
    assert wakeup.wait(0)
    assert 1 == listeners(session)


def test_another_thread_ends_the_wait(wakeup: Wakeup) -> None:
    threading.Timer(0.1, wakeup.notify).start()
    assert waited(wakeup, 5) < 1


def test_a_storm_of_notifications_is_heeded_a_few_times(wakeup: Wakeup, session: Session) -> None:
    stop = threading.Event()

    def storm() -> None:
        while not stop.is_set():
            session.rows("notify pgbeat")

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        until, heeded = time.monotonic() + 1, 0
        while time.monotonic() < until:
            heeded += wakeup.wait(1)
    finally:
        stop.set()
        thread.join()

    assert 2 <= heeded <= 25


def test_a_flood_is_over_for_the_listener_when_it_is_over(
    wakeup: Wakeup, session: Session, migrated_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What a listener leaves unread fills a queue that all databases of the server share."""
    flooding = Session(migrated_database)
    flood = "select pg_notify('pgbeat', i || repeat('x', 7000)) from generate_series(1, 500) as i"
    flooder = threading.Thread(target=lambda: [flooding.rows(flood) for _ in range(20)])  # 70 MB
    flooder.start()
    while flooder.is_alive():
        wakeup.wait(0.05)

    eventually(lambda: not wakeup.wait(0.05), 10, "the listener has read or left all of it")
    assert 0 == session.value("select pg_notification_queue_usage()")
    told = [record for record in caplog.records if "'pgbeat' is flooded" in record.message]
    assert len(told) <= 1
    wakeup.wait(listen.FLOOD_PAUSE + 0.1)
    wakeup.wait(0)
    session.rows("notify pgbeat")
    assert waited(wakeup, 5) < 1


def test_a_drain_that_does_not_end_is_left_and_said_once(
    wakeup: Wakeup, session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listen, "DRAINED_WITHIN", -1.0)
    monkeypatch.setattr(listen, "FLOOD_PAUSE", 0.0)
    for _ in range(3):
        session.rows("select pg_notify('pgbeat', i || repeat('x', 7000)) from generate_series(1, 500) as i")
        assert wakeup.wait(5)
        assert wakeup.wait(5), "who begins to listen again looks anew"

    assert 1 == caplog.text.count("The notification channel 'pgbeat' is flooded: polling only")


def test_a_ring_ends_the_wait_in_a_storm_too(wakeup: Wakeup, session: Session) -> None:
    session.rows("notify pgbeat")
    wakeup.wait(1)
    session.rows("notify pgbeat")
    wakeup.notify()

    assert waited(wakeup, 5) < 0.04


def test_a_notification_that_follows_another_does_not_lengthen_the_wait(
    wakeup: Wakeup, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is until a row is due."""
    monkeypatch.setattr(listen, "DEBOUNCE", 60)
    session.rows("notify pgbeat")
    wakeup.wait(5)
    later = threading.Timer(1.5, lambda: session.rows("notify pgbeat"))
    later.start()

    assert 1.9 < waited(wakeup, 2) < 3.4  # at its worst it began anew with the notification
    later.join()


def test_a_lost_listening_connection_is_made_anew(wakeup: Wakeup, session: Session) -> None:
    session.rows("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'")
    wakeup.wait(1)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not session.rows(
        "select pid from pg_stat_activity where query like 'listen%' and pid <> pg_backend_pid()"
    ):
        wakeup.wait(0.1)

    session.rows("notify pgbeat")
    assert waited(wakeup, 5) < 1


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_behind_a_pooler_nothing_listens_and_that_is_said_once(
    migrated_database: str, pgbouncer: PgBouncer, driver: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="celery_pgbeat.postgres.listen")
    url = make_url(pgbouncer.url).set(drivername=f"postgresql+{driver}")
    wakeup = Wakeup(Database(url.render_as_string(hide_password=False)))
    session = Session(migrated_database)
    for _ in range(2):
        assert not wakeup.wait(0.1)

    with closing(psycopg2.connect(pgbouncer.url)) as bystander:
        bystander.autocommit = True
        for _ in range(10 * pgbouncer.pool_size):  # each server connection of the pool in turn
            session.rows("notify pgbeat")
            with bystander.cursor() as cursor:
                cursor.execute("select 1")
        assert [] == bystander.notifies
    assert ["Not listening, polling only: there is a pooler before Postgres"] == caplog.messages
    wakeup.close()
    wakeup.database.close()
