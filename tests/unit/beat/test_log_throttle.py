from __future__ import annotations

import pytest

from celery_pgbeat.beat import log_throttle as module
from celery_pgbeat.beat.log_throttle import EVERY, LogThrottle


def test_each_row_is_logged_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "boottime", lambda: now[0])
    complaints = LogThrottle()
    heard = []
    for second in range(2 * int(EVERY) + 1):
        now[0] = float(second)
        heard += [(second, name) for name in ("a", "b") if complaints.is_due(name)]

    assert [(second, name) for second in (0, 60, 120) for name in ("a", "b")] == heard


def test_the_longest_ago_is_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    complaints = LogThrottle()

    assert [True, True, True, True, False] == [complaints.is_due(name) for name in "abcac"]
