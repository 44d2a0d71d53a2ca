"""What `tracking = full` comes to where no worker reports."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery

from celery_pgbeat.beat import outcomes
from celery_pgbeat.beat.outcomes import ANSWERED, PING_EVERY, Outcomes


class Turns:
    """An `Outcomes` that is asked in turns a ping apart, and workers that answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.pings = 0
        self._seconds = 0.0
        monkeypatch.setattr(outcomes, "boottime", lambda: self._seconds)
        app = Celery("unreported", broker="memory://", set_as_current=False, **settings)
        monkeypatch.setattr(app.control, "ping", self._pong)
        self._outcomes = Outcomes(app)

    def _pong(self, **_: Any) -> list[dict[str, str]]:
        self.pings += 1
        return [{"worker": "pong"}]

    def full_acts_as(self, *, workers_track: bool = False) -> str:
        self._seconds += PING_EVERY
        self._outcomes.full_acts_as(workers_track)
        thread = self._outcomes._workers._thread
        if thread is not None:
            thread.join(10)
        return self._outcomes.full_acts_as(workers_track)


def test_full_is_full_until_workers_have_answered_twice_without_one_that_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns(monkeypatch, backend="cache+memory://")

    assert ["full"] * (ANSWERED - 1) + ["result"] == [turns.full_acts_as() for _ in range(ANSWERED)]
    assert "full" == turns.full_acts_as(workers_track=True)
    assert "full" == turns.full_acts_as()


def test_without_a_result_backend_full_acts_as_send(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)

    assert "send" == [turns.full_acts_as() for _ in range(ANSWERED)][-1]


def test_workers_that_cannot_answer_are_not_pinged(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch, worker_enable_remote_control=False)

    assert {"full"} == {turns.full_acts_as() for _ in range(2 * ANSWERED)}
    assert 0 == turns.pings
