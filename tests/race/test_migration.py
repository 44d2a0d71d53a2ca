"""A migration under load: those at work wait for it, and none of their statements is ended in its favour."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from celery_pgbeat.postgres import migrate
from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.transactions import PATIENCE, Attempt, Transaction, at_once
from tests.harness.wait import eventually

ACTIVE_JOBS = "select 1 from pgbeat.active_job"
ROWS = "select 1 from pgbeat.periodic_task"
WAITING = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture
def other(migrated_database: str) -> Iterator[Transaction]:
    made = Transaction(migrated_database)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be one more migration."""
    following = [*migrate.migrations(), (migrate.latest() + 1, "select '100 %'")]
    monkeypatch.setattr(migrate, "migrations", lambda: iter(following))
    monkeypatch.setattr(migrate, "latest", lambda: following[-1][0])


def migration(store: BeatQueries) -> Attempt[int]:
    return Attempt(lambda: migrate.migrate(store.database.engine))


def test_a_look_that_comes_while_a_migration_waits_is_answered_after_it(
    store: BeatQueries, other: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that waits."""
    monkeypatch.setattr(migrate, "LOCK", migrate.LOCK.replace("500ms", "1min"))
    other.execute(ACTIVE_JOBS)
    migrating = migration(store).waits_for(other, store.database)
    looking = Attempt(lambda: store.look([]))
    eventually(lambda: 2 == len(store.database.execute(WAITING)), PATIENCE, "both wait")
    other.commit()

    assert 1 == migrating.answer()
    assert not looking.answer().due


def test_a_migration_gives_way_to_a_statement_that_it_blocks_and_tries_again(
    store: BeatQueries, other: Transaction
) -> None:
    other.execute(ACTIVE_JOBS)
    migrating = migration(store).waits_for(other, store.database)

    assert [] == at_once(lambda: other.execute(ROWS))
    other.commit()

    assert 1 == migrating.answer()
    assert migrate.latest() == migrate.check(store.database.engine, "pgbeat").version
