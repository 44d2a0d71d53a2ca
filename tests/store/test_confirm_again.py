"""A dispatcher whose confirm was stepped over: it confirms again with its next turn, while the lease lasts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.dispatcher import Dispatcher
from celery_pgbeat.beat.publisher import Published
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings
from tests.race.transactions import Transaction
from tests.store.ticks import beat, decided, jobs, make_due, submit


class Sends:
    """A publisher to whom the broker is always there."""

    def publish(self, sent: list[Any], _: float) -> Published:
        return Published(sent=[(job.id, 0.0) for job in sent])


@pytest.fixture
def store(migrated_database: str) -> Iterator[BeatQueries]:
    made = beat(migrated_database)
    yield made
    made.database.close()


@pytest.fixture
def job(store: BeatQueries) -> UUID:
    """A submitted job that is not sent yet."""
    make_due(store, "a")
    (row,) = store.mark(10)
    submit(store, [row])
    made = decided(row).job
    assert made is not None
    return made


@pytest.mark.parametrize(("lease", "state"), [(60.0, "sent"), (0.0, "pending")])
def test_a_message_sent_while_its_job_was_locked_is_confirmed_in_the_next_turn(
    store: BeatQueries, migrated_database: str, job: UUID, lease: float, state: str
) -> None:
    settings = Settings.from_mapping({"pgbeat_url": migrated_database})
    parts: dict[str, Any] = {
        "publisher": Sends(),
        "outcomes": None,
        "watch": DatabaseClock(settings.dead_after),
        "code": SimpleNamespace(lazy_names=[]),
    }
    rules = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
    dispatcher = Dispatcher(store, settings=settings, rules=rules, **parts)
    other = Transaction(migrated_database)
    other.execute("select from pgbeat.active_job for update")

    dispatcher._delivery._deliver([(job, "a", lambda: SimpleNamespace(id=job, send_by=None))], boottime() + lease)  # type: ignore[arg-type,return-value]
    assert ["pending"] == [found["state"] for found in jobs(store)]
    other.rollback()
    dispatcher.turn()

    assert [state] == [found["state"] for found in jobs(store)]
