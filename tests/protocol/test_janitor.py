"""The upkeep of a beat against the database: the days of the history while somebody stands in the way."""

from __future__ import annotations

import logging
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from celery_pgbeat.beat.steps import Steps
from celery_pgbeat.beat.upkeep import janitor
from celery_pgbeat.beat.upkeep.janitor import AGAIN_AFTER, LEFT_TOO_OFTEN, Janitor
from celery_pgbeat.beat.upkeep.mode import Mode
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.process.node import NodeId
from celery_pgbeat.settings import Settings
from tests.harness.session import Session
from tests.harness.ticks import beat
from tests.harness.transactions import Transaction, at_once

TOLD = "The history's days have not been made for 5 minutes"


def keeper_of(store: BeatQueries, node: NodeId, tracking: Any) -> Janitor:
    steps = Steps(store.database)
    return Janitor(store, Settings(), node, tracking, Mode(store, Settings()), steps, lambda: None, lambda: None)


def test_days_that_another_session_blocks_are_logged_and_made_once_it_is_gone(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now = 0.0
    monkeypatch.setattr(janitor, "boottime", lambda: now)
    store = beat(migrated_database)
    tracking: Any = SimpleNamespace(workers_track=False)
    keeper = keeper_of(store, NodeId.mine(), tracking)
    other = Session(migrated_database)
    other.rows(
        "drop table pgbeat.finished_job_" + other.value("select to_char(pgbeat.now() at time zone 'UTC', 'YYYYMMDD')")
    )
    other.rows("begin")
    other.rows("select pgbeat.try_lock('make_days')")

    for _ in range(2 * LEFT_TOO_OFTEN):
        keeper.run_cycle()
        now += AGAIN_AFTER

    assert [True] == [TOLD in text for text in caplog.messages if "history" in text], "once"
    other.rows("rollback")
    keeper.run_cycle()
    made = {f"Made {days} days of the history" for days in (1, 2)}  # two, if a day has begun meanwhile
    assert made & {*caplog.messages}


def test_old_days_that_a_reader_holds_are_left_within_200_milliseconds_and_keep_no_job_from_ending(
    migrated_database: str,
) -> None:
    """B-15."""
    session, store = Session(migrated_database), beat(migrated_database)
    session.rows(
        "create table pgbeat.finished_job_20200101 partition of pgbeat.finished_job"
        " for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')"
    )
    reader = Transaction(migrated_database)
    reader.execute("select * from pgbeat.finished_job")

    with pytest.raises(DatabaseBusy, match="lock timeout"):
        store.prune(timedelta(days=7))
    setting = "select proconfig from pg_proc where proname = 'prune' and pronamespace = 'pgbeat'::regnamespace"
    assert "lock_timeout=200ms" in session.value(setting)

    # What ends a job does not wait for the reader, and the day goes once that has gone.
    finished = "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at,"
    finished += " finished_at) values (gen_random_uuid(), 'a', now(), 'schedule', 'failed', 'a', now(), now())"
    at_once(lambda: session.rows(finished))
    reader.rollback()
    assert 1 == store.prune(timedelta(days=7))


def test_a_beat_that_stops_is_remembered_and_the_last_of_all_for_longer_than_a_day(migrated_database: str) -> None:
    tracking: Any = SimpleNamespace(workers_track=False)
    node = NodeId.mine()
    store = beat(migrated_database, str(node))
    keeper = keeper_of(store, node, tracking)
    session = Session(migrated_database)

    def known() -> list[str]:
        return [row["id"] for row in session.rows("select id from pgbeat.stopped_beat order by stopped_at")]

    keeper.start()
    assert [] == known()
    keeper.stop()
    assert [str(node)] == known()

    session.rows("update pgbeat.stopped_beat set stopped_at = pgbeat.now() - interval '2 days'")
    session.rows("insert into pgbeat.stopped_beat values ('older', 'web-1', pgbeat.now() - interval '3 days')")
    keeper.start()
    assert [str(node)] == known()
