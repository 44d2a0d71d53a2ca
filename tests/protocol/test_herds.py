"""Many rows due at once: those due longest go first, and what has only just come due does not wait for the last."""

from __future__ import annotations

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.ticks import beat


@pytest.fixture
def store(migrated_database: str) -> BeatQueries:
    store = beat(migrated_database)
    store.database.execute(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        "select 'old-' || to_char(n, 'FM000'), 'app.probe', 'every 1h', pgbeat.now() - interval '1 minute' + n * '1 ms'"
        "::interval from generate_series(1, 200) n"
    )
    store.database.execute(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        "select 'new-' || to_char(n, 'FM000'), 'app.probe', 'every 1s', pgbeat.now() - n * interval '1 ms' "
        "from generate_series(1, 40) n"
    )
    return store


def test_the_oldest_are_marked_first(store: BeatQueries) -> None:
    assert [f"old-{n:03}" for n in range(1, 101)] == [row.name for row in store.mark(100)]


def test_while_a_herd_is_driven_a_part_of_each_batch_goes_to_what_has_just_come_due(store: BeatQueries) -> None:
    names = [row.name for row in store.mark(100, fresh=25)]

    assert {f"old-{n:03}" for n in range(1, 76)} | {f"new-{n:03}" for n in range(1, 26)} == set(names)


def test_what_fell_a_little_behind_is_still_before_the_herd(store: BeatQueries) -> None:
    store.database.execute(
        "update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '20 s' where name = 'new-007'"
    )

    assert "new-007" in [row.name for row in store.mark(160, fresh=40)]


def test_nothing_is_marked_twice_where_all_has_just_come_due(store: BeatQueries) -> None:
    store.database.execute("delete from pgbeat.periodic_task where starts_with(name, 'old-')")

    names = [row.name for row in store.mark(100, fresh=25)]

    assert len(set(names)) == len(names) == 40
