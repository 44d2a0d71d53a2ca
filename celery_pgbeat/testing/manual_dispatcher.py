"""A beat's turns, made by hand: the dispatcher as it is, in one thread, by a clock that is set."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.beat.database_clock import DatabaseClock
from celery_pgbeat.beat.decide.backfiller import Backfiller
from celery_pgbeat.beat.decide.dispatcher import Dispatcher
from celery_pgbeat.beat.decide.submitter import Submitter
from celery_pgbeat.beat.send.delivery import Delivery, Order
from celery_pgbeat.beat.send.publisher import Publisher
from celery_pgbeat.beat.upkeep.result_poller import ResultPoller
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.testing.declared import StrictCode
from celery_pgbeat.testing.temporary_schema import Clock


class FixedClock(DatabaseClock):
    """A beat's watch that shows the clock that is set, and has seen the database all along."""

    def __init__(self, clock: Clock, dead_after: timedelta) -> None:
        super().__init__(dead_after)
        self._clock = clock

    @property
    def may_judge(self) -> bool:
        """That the clock leaps is no outage."""
        return True

    @property
    def database_time(self) -> datetime:
        """What the clock shows."""
        return self._clock.now


class StubResults(ResultPoller):
    """What became of jobs: only what the test says. Neither workers nor the result backend are asked."""

    def full_acts_as(self, workers_track: bool) -> str:
        """Tell that workers report, if not now then later."""
        del workers_track
        return "full"

    def told(self, jobs: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str]]:
        """Tell nothing."""
        del jobs
        return []


class InlineDelivery(Delivery):
    """Delivers in the thread that makes the turn: when the turn is over, so is its delivery."""

    def deliver(self, orders: Sequence[Order], lease_ends: float) -> None:
        """Deliver a batch now."""
        if orders:
            self._deliver(orders, lease_ends)


class ManualDispatcher(Dispatcher):
    """The dispatcher of a beat that makes a turn when it is told to."""

    def __init__(
        self,
        store: BeatQueries,
        publisher: Publisher,
        watch: DatabaseClock,
        settings: Settings,
        rules: Rules,
        code: StrictCode,
        app: Any,
    ) -> None:
        told = StubResults(app)
        super().__init__(store, publisher, told, watch, settings, rules, code)
        self._delivery = InlineDelivery(
            store, publisher, self._log_throttle, lambda: False, lambda: None, self._database_time
        )
        self._submitter = Submitter(store, self._delivery, told, watch, rules)
        self._backfiller = Backfiller(store, self._delivery, self._submitter, settings, rules)
        self.workers_track = True

    def turn(self) -> float:
        """Look, whatever was seen a moment ago: how long ago that was in real time decides nothing here."""
        self._looks_at = 0.0
        return super().turn()
