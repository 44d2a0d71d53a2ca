"""A dispatcher whose confirm was stepped over: it confirms again with its next cycle, while the lease lasts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.send.publisher import Published
from celery_pgbeat.beat.wiring import Wiring
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings
from tests.harness.outbox import app_of
from tests.harness.outbox import job as outgoing
from tests.harness.ticks import decided, jobs, make_due, submit
from tests.harness.transactions import Transaction


class Sends:
    """A publisher to whom the broker is always there."""

    def publish(self, sent: list[Any], *_: Any) -> Published:
        return Published(sent=[(job.id, 0.0) for job in sent])


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
def test_a_message_sent_while_its_job_was_locked_is_confirmed_in_the_next_cycle(
    store: BeatQueries, migrated_database: str, job: UUID, lease: float, state: str
) -> None:
    settings = Settings.from_mapping({"pgbeat_url": migrated_database})
    app = app_of("memory://")
    wiring = Wiring(Scheduler(app, lazy=True), settings)
    publisher: Any = Sends()
    made = wiring.open(store, publisher=publisher, inline=True)
    other = Transaction(migrated_database)
    other.execute("select from pgbeat.active_job for update")

    made.delivery.deliver([outgoing(id=job, periodic_task="a")], boottime() + lease)
    assert ["pending"] == [found["state"] for found in jobs(store)]
    other.rollback()
    made.dispatcher.run_cycle()
    wiring.wakeup.close()
    wiring.database.close()

    assert [state] == [found["state"] for found in jobs(store)]
