"""What `tracking = full` comes to where no worker reports."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery

from celery_pgbeat.beat.upkeep import result_poller
from celery_pgbeat.beat.upkeep.result_poller import ANSWERED, PING_EVERY, ResultPoller


class ManualDispatcher:
    """A `ResultPoller` that is asked in turns a ping apart, and workers that answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.pings = 0
        self._seconds = 0.0
        monkeypatch.setattr(result_poller, "boottime", lambda: self._seconds)
        app = Celery("unreported", broker="memory://", set_as_current=False, **settings)
        monkeypatch.setattr(app.control, "ping", self._pong)
        self._result_poller = ResultPoller(app)

    def _pong(self, **_: Any) -> list[dict[str, str]]:
        self.pings += 1
        return [{"worker": "pong"}]

    def full_acts_as(self, *, workers_track: bool = False) -> str:
        self._seconds += PING_EVERY
        self._result_poller.full_acts_as(workers_track)
        thread = self._result_poller._workers._thread
        if thread is not None:
            thread.join(10)
        return self._result_poller.full_acts_as(workers_track)


def test_full_acts_as_less_only_after_workers_answered_two_pings_and_none_tracks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = ManualDispatcher(monkeypatch, backend="cache+memory://")

    assert ["full"] * (ANSWERED - 1) + ["result"] == [turns.full_acts_as() for _ in range(ANSWERED)]
    assert "full" == turns.full_acts_as(workers_track=True)
    assert "full" == turns.full_acts_as()


def test_without_a_result_backend_full_acts_as_send(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = ManualDispatcher(monkeypatch)

    assert "send" == [turns.full_acts_as() for _ in range(ANSWERED)][-1]


def test_workers_that_cannot_answer_are_not_pinged(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = ManualDispatcher(monkeypatch, worker_enable_remote_control=False)

    assert {"full"} == {turns.full_acts_as() for _ in range(2 * ANSWERED)}
    assert 0 == turns.pings
