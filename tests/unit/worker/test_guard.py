"""Asking Postgres with patience, and what is believed of a start that nobody will heartbeat for."""

from __future__ import annotations

import uuid
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import MessageCopy
from celery_pgbeat.worker import guard as module
from celery_pgbeat.worker.context import WorkerContext
from celery_pgbeat.worker.guard import UNHEARD, Guard, retry_until_deadline


class DatabaseClock:
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
def watch(monkeypatch: pytest.MonkeyPatch) -> DatabaseClock:
    made = DatabaseClock()
    monkeypatch.setattr(module, "time", made)
    return made


def away() -> Any:
    raise DatabaseUnavailable("away")


def test_a_database_that_answers_is_asked_once(watch: DatabaseClock) -> None:
    assert "yes" == retry_until_deadline(lambda: "yes")
    assert [] == watch.pauses


def test_a_database_that_is_away_is_asked_with_growing_pauses_for_a_bounded_time(watch: DatabaseClock) -> None:
    with pytest.raises(DatabaseUnavailable):
        retry_until_deadline(away)
    assert sorted(watch.pauses) == watch.pauses
    assert (0.1, 2.0) == (watch.pauses[0], watch.pauses[-1])
    assert module.PATIENCE - 2 < watch.now <= module.PATIENCE


def test_an_answer_that_comes_in_time_is_the_answer(watch: DatabaseClock) -> None:
    assert "yes" == retry_until_deadline(lambda: "yes" if watch.now > 3 else away())


def test_another_error_is_not_waited_out(watch: DatabaseClock) -> None:
    def refused() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        retry_until_deadline(refused)
    assert [] == watch.pauses


@pytest.mark.parametrize(
    ("timelimit", "silence"), [([20, 10], timedelta(seconds=50)), ([None, 10], UNHEARD), (None, UNHEARD)]
)
def test_a_start_that_nobody_heartbeats_for_is_believed_for_as_long_as_it_may_run(
    timelimit: Any, silence: timedelta
) -> None:
    guard = Guard(cast(WorkerContext, SimpleNamespace(node="node")), track_started=False)
    start, believed = guard._start_of_our_own({"timelimit": timelimit}, MessageCopy(uuid.uuid4(), 1, 2))
    assert (1, 2, silence) == (start.run, start.attempt, believed)
