"""A beat whose events an observer measures, with a publisher that returns what a test says."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.send.publisher import Published
from celery_pgbeat.beat.wiring import Wiring
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.planning import Decision, Due
from celery_pgbeat.postgres.beat_queries import BeatQueries, Marked, Submitted
from celery_pgbeat.settings import Settings
from celery_pgbeat.testing.stubs import NullBroker
from tests.harness.outbox import app_of, job


class JudgingClock(DatabaseClock):
    """The clock of a beat that has been in contact with the database for long."""

    may_judge = True


class Observed:
    """One beat in the test's thread.

    Attributes:
        published: what becomes of the next batch; None where the broker takes all of it.
    """

    def __init__(self, queries: BeatQueries, observer: Observer) -> None:
        self.queries = queries
        self.observer = observer
        self.published: Published | None = None
        sender = Scheduler(app_of("memory://"), lazy=True)
        settings = Settings(url=queries.database.url)
        clock = JudgingClock(settings.dead_after)
        publisher: Any = self
        self._wiring = Wiring(sender, settings, database=queries.database, clock=clock, broker=NullBroker(sender))
        self.beat = self._wiring.open(queries, observer=observer, publisher=publisher, inline=True)

    def close(self) -> None:
        """Close what the beat has opened."""
        self._wiring.wakeup.close()
        self.queries.database.close()

    def publish(self, jobs: Sequence[Any], *_: Any) -> Published:
        """Return what the test says, in the place of the publisher."""
        return self.published or Published(sent=[(job.id, 0.0) for job in jobs])

    def look(self) -> None:
        """Read the pending work."""
        self.queries.look()
        self.observer.looked()

    def mark(self) -> list[Due]:
        """Mark what is due."""
        began = time.time_ns()
        due = self.queries.mark(10)
        self.observer.marked(Marked(due, []), began)
        return due

    def mark_or_submit(self) -> Marked:
        """Mark what is due, and submit at once what may be."""
        began = time.time_ns()
        marked = self.queries.mark_or_submit(10, self._wiring.rules)
        self.observer.marked(marked, began)
        return marked

    def submit(self, decisions: Sequence[Decision]) -> None:
        """Submit what was decided."""
        answers: list[Submitted] = []
        with self.observer.submitting(decisions, answers):
            answers += self.queries.submit(decisions, "UTC", may_judge=True, resending=True)

    def deliver(self, jobs: Sequence[uuid.UUID]) -> None:
        """Publish these jobs and record what became of them."""
        self.beat.delivery.deliver([job(id=one) for one in jobs], boottime() + 60)

    def jobs(self) -> list[uuid.UUID]:
        """Return the active jobs."""
        return [row.id for row in self.queries.database.execute("select id from pgbeat.active_job order by id")]
