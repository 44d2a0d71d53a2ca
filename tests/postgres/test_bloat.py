"""What the beats' writes leave behind in the tables: a mark, of which there is one a tick, rewrites no index."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.ticks import beat, decided
from tests.harness.transactions import Transaction

ROWS, ROUNDS = 200, 10
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def store(migrated_database: str) -> Iterator[BeatQueries]:
    made = beat(migrated_database)
    made.database.execute(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        f"select 'row-' || n, 'app.probe', 'every 1h', pgbeat.now() - interval '1 h' from generate_series(1, {ROWS}) n"
    )
    yield made
    made.database.close()


def share_of_hot_marks(store: BeatQueries, url: str) -> float:
    """Mark and submit all rows again and again; return the share of the marks that rewrote no index."""
    marks = hot = 0
    for _ in range(ROUNDS):
        marking = Transaction(url)
        rows = marking.store().mark(ROWS)
        (counted,) = marking.execute(
            "select pg_stat_get_xact_tuples_updated(oid) as marks, pg_stat_get_xact_tuples_hot_updated(oid) as hot "
            "from pg_class where oid = 'pgbeat.periodic_task'::regclass"
        )
        marking.commit()
        assert ROWS == len(rows) == counted.marks
        marks, hot = marks + counted.marks, hot + counted.hot
        store.submit([decided(row, row.next_run_at + MICROSECOND) for row in rows], "UTC", True, True)
        store.database.execute("delete from pgbeat.active_job")
    return float(hot / marks)


def test_a_mark_rewrites_no_index(store: BeatQueries, migrated_database: str) -> None:
    assert 0.9 < share_of_hot_marks(store, migrated_database)


def test_an_index_on_what_a_mark_writes_would_be_rewritten_each_time(
    store: BeatQueries, migrated_database: str
) -> None:
    """The control."""
    store.database.execute("create index on pgbeat.periodic_task (marked_at)")

    assert 0 == share_of_hot_marks(store, migrated_database)
