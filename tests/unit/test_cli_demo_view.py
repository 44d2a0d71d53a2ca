"""The table of the demo: it fits an ordinary terminal."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from celery_pgbeat.cli.demo.view import Beat, Tick, View

NOW = datetime(2026, 12, 7, 3, tzinfo=timezone.utc)
TICK = Tick("clean-up-sessions", "Python", "R/2026-12-07T03:00:00Z/PT2S", NOW, "beat-1", "succeeded", timedelta(0, 0.5))
FIRST = Tick("nightly", "SQL", "every 2s", None, "", "", None)


@pytest.mark.parametrize("width", [79, 119, 199])
def test_the_state_and_the_lateness_of_each_tick_are_seen_at_every_width(width: int) -> None:
    view = View(NOW, timedelta(seconds=5), 1, 1, 0, [Beat("beat-1", 7, "running", 1)], [TICK, FIRST])

    lines = [line for line, _ in view.table(width)]

    assert max(map(len, lines)) <= width
    heading, tick, first = lines[-3:]
    assert heading.split()[-2:] == ["STATE", "STARTED"]
    assert tick.split()[-3:] == ["succeeded", "+0.50", "s"]
    assert first.split()[-1] == "-"
