"""What the testing kit puts in the place of a beat's clock, broker, result backend and handling of errors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from celery_pgbeat.beat.database_clock import DatabaseClock
from celery_pgbeat.beat.send.broker import Broker, Sender
from celery_pgbeat.beat.steps import Steps
from celery_pgbeat.beat.upkeep.result_poller import ResultPoller
from celery_pgbeat.testing.temporary_schema import Clock


class FixedClock(DatabaseClock):
    """The clock that the test sets, with a database that was never away."""

    def __init__(self, clock: Clock, dead_after: timedelta) -> None:
        super().__init__(dead_after)
        self._shown = clock

    @property
    def may_judge(self) -> bool:
        """True: a jump of this clock is no outage."""
        return True

    @property
    def database_time(self) -> datetime:
        """What the clock shows."""
        return self._shown.now


class StubResults(ResultPoller):
    """Asks neither the workers nor the result backend: only the test decides how jobs end."""

    def full_acts_as(self, workers_track: bool) -> str:
        """Return `full`: the test reports, if not now then later."""
        del workers_track
        return "full"

    def final_states(self, jobs: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str]]:
        """Return nothing."""
        del jobs
        return []


class StrictSteps(Steps):
    """Steps whose errors the test gets."""

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Run a step; return whether it made progress."""
        del name
        return bool(step())


class NullBroker(Broker):
    """A broker that is always there; every error is the message's own."""

    def __init__(self, sender: Sender) -> None:
        super().__init__(sender, lambda _: None)
        self.producer = object()

    def ready(self) -> bool:
        """Return that it is there."""
        return True

    def is_ready_within(self, seconds: float) -> bool:
        """Return at once that it is there."""
        del seconds
        return True

    def is_connection_error(self, error: BaseException) -> bool:
        """Return that there is no connection that could fail."""
        del error
        return False
