"""How long a start waits for Postgres, and how long a start without heartbeats counts as alive."""

from __future__ import annotations

import uuid
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import MessageCopy
from celery_pgbeat.worker.context import WorkerContext
from celery_pgbeat.worker.start import guard as module
from celery_pgbeat.worker.start.guard import WITHOUT_HEARTBEAT, Guard, retry_until_deadline


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def away() -> Any:
    raise DatabaseUnavailable("away")


def test_a_statement_that_succeeds_is_run_once(clock: Clock) -> None:
    assert "yes" == retry_until_deadline(lambda: "yes")
    assert [] == clock.pauses


def test_a_database_that_is_away_is_asked_with_growing_pauses_for_a_bounded_time(clock: Clock) -> None:
    with pytest.raises(DatabaseUnavailable):
        retry_until_deadline(away)
    assert sorted(clock.pauses) == clock.pauses
    assert (0.1, 2.0) == (clock.pauses[0], clock.pauses[-1])
    assert module.START_TIMEOUT - 2 < clock.now <= module.START_TIMEOUT


def test_a_database_that_comes_back_in_time_is_enough(clock: Clock) -> None:
    assert "yes" == retry_until_deadline(lambda: "yes" if clock.now > 3 else away())


def test_another_error_is_raised_at_once(clock: Clock) -> None:
    def refused() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        retry_until_deadline(refused)
    assert [] == clock.pauses


@pytest.mark.parametrize(
    ("timelimit", "dead_after"),
    [([20, 10], timedelta(seconds=50)), ([None, 10], WITHOUT_HEARTBEAT), (None, WITHOUT_HEARTBEAT)],
)
def test_a_start_without_heartbeats_counts_as_alive_for_as_long_as_it_may_run(
    timelimit: Any, dead_after: timedelta
) -> None:
    guard = Guard(cast(WorkerContext, SimpleNamespace(node="node")), track_started=False)
    start, counts_as_alive_for = guard._start_without_token({"timelimit": timelimit}, MessageCopy(uuid.uuid4(), 1, 2))
    assert (1, 2, dead_after) == (start.run, start.attempt, counts_as_alive_for)
