"""What the demo says: its table, who did whose work, and which servers it would use."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.cli.demo.queries import InFlight
from celery_pgbeat.cli.demo.scenario import DemoFault
from celery_pgbeat.cli.demo.view import Beat, Tick, View
from celery_pgbeat.cli.options import confirmation

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


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([(-0.1, 7)], "the messages of beat-1 had arrived: nothing was left to the others"),
        ([(-0.1, 7), (2.9, 8)], "the work of beat-1 was done by beat-2, 2.9 s later"),
        ([(2.9, 8), (3.1, 70)], "the work of beat-1 was done by beat-1 and beat-2, 3.1 s later"),
    ],
)
def test_a_killed_beat_has_not_done_its_own_work_later(outcomes: list[tuple[float, int]], said: str) -> None:
    killed: Any = SimpleNamespace(name="beat-1")
    fault = DemoFault(killed, InFlight((), ()), NOW, 7)
    at = [(NOW + timedelta(seconds=seconds), pid) for seconds, pid in outcomes]

    assert said == fault.ended(at, lambda pid: {7: "beat-1", 70: "beat-1", 8: "beat-2"}[pid or 0])


def test_at_a_terminal_the_demo_asks_before_it_uses_servers_that_only_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    environment = {"PGBEAT_URL": "postgresql://me:s3cret@db/shop", "CELERY_BROKER_URL": "redis://:s3cret@broker"}

    asked = CliRunner().invoke(main, ["demo"], input="n\n", env=environment)

    assert 1 == asked.exit_code
    assert "Use PGBEAT_URL (postgresql+psycopg2://me:***@db/shop) and CELERY_BROKER_URL (redis://***@broker)?" in (
        asked.stderr
    )


def test_the_demo_does_not_ask_before_it_uses_the_server_of_its_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)

    result = CliRunner().invoke(main, ["--url", "postgresql://127.0.0.1:1/x", "demo", "--broker", "memory://"])

    assert (3, False) == (result.exit_code, "Use " in result.output)
