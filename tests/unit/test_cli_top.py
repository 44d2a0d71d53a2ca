"""`top`: one frame, and how the next one comes."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from click.testing import CliRunner

from celery_pgbeat.cli import main
from celery_pgbeat.cli import top as command
from celery_pgbeat.cli.output.screen import Screen
from celery_pgbeat.cli.top.frame import Frame
from celery_pgbeat.errors import DatabaseUnavailable

NOW = datetime(2026, 12, 7, 3, tzinfo=timezone.utc)
QUIET: dict[str, Any] = {
    "now": NOW,
    "under_way": "{}",
    **dict.fromkeys(("made", "started", "succeeded", "failed", "skipped", "late"), 0),
    **dict.fromkeys(("start_median", "start_worst", "late_since", "next_run_at")),
}
BEAT: dict[str, Any] = {
    "id": "a-beat",
    "role": "beat",
    "hostname": "host\x1b[31m",
    "pid": 7,
    "alive": True,
    "tracking": False,
    "last_seen_at": NOW - timedelta(seconds=3),
    "jobs": 2,
}


def frame(activity: dict[str, Any] | None = None, **lists: Any) -> Frame:
    empty: dict[str, Any] = {"nodes": [], "overdue": [], "running": [], "problems": []}
    return Frame("here", 10.0, {**QUIET, **(activity or {})}, **{**empty, **lists})


def lines(shown: Frame) -> list[str]:
    return [line for line, _ in shown.table(80)]


def test_a_quiet_frame_has_no_lists() -> None:
    assert [
        "2026-12-07 03:00:00Z",
        "here",
        "0 beats, 0 workers",
        "jobs: none",
        "last 10 s: 0.0 jobs/s made, 0.0/s started",
        "of them 0 succeeded, 0 failed, 0 skipped",
        "nothing is overdue; next run -",
    ] == lines(frame())


def test_a_busy_frame_shows_rates_lateness_and_who_is_silent() -> None:
    busy = {
        "under_way": '{"running": 3, "pending": 1}',
        "made": 1234,
        "started": 1200,
        "start_median": timedelta(seconds=0.0123),
        "start_worst": timedelta(seconds=2.5),
        "late": 2,
        "late_since": NOW - timedelta(seconds=95),
        "next_run_at": NOW,
    }
    worker = {**BEAT, "role": "worker", "tracking": False}

    shown = lines(frame(busy, nodes=[BEAT, worker, {**worker, "alive": False}]))

    assert "1 beat, 1 worker, 1 silent, 1 without tracker" == shown[2]
    assert "jobs: 1 pending, 3 running" == shown[3]
    assert "last 10 s: 123.4 jobs/s made, 120.0/s started: after 0.01 s, 95 % after 2.50 s" == shown[4]
    assert "2 overdue, the first for 95 s; next run 2026-12-07 03:00:00Z (now)" == shown[6]
    assert ["beat", "host\\x1b[31m", "7", "alive", "3", "s", "ago", "-", "2"] == shown[9].split()
    assert "blind" in shown[10]
    assert max(map(len, shown)) <= 80


def test_lists_name_what_is_overdue_runs_and_cannot_be_planned() -> None:
    minute = NOW - timedelta(minutes=1)

    shown = lines(
        frame(
            overdue=[{"name": "late", "due_at": minute}],
            running=[{"periodic_task": "slow", "started_at": minute, "worker": "w"}],
            problems=[{"name": "bad", "problem": "no such zone"}],
        )
    )

    assert [
        ["OVERDUE", "NAME  LATE BY", "late  60 s"],
        ["RUNNING LONGEST", "NAME  FOR   WORKER", "slow  60 s  w"],
        ["PROBLEMS", "NAME  PROBLEM", "bad   no such zone"],
    ] == [section.splitlines() for section in "\n".join(shown).split("\n\n")[1:]]


def test_errors_are_red() -> None:
    coloured = dict(frame({"failed": 1, "late": 1, "late_since": NOW}).table(80))

    assert ["red", "red", "red"] == [colour for colour in coloured.values() if colour]
    assert [] == [colour for _, colour in frame(nodes=[BEAT]).table(80) if colour]


def test_it_looks_again_waits_for_the_database_and_ends_with_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [frame(), DatabaseUnavailable("gone"), frame({"made": 10}), KeyboardInterrupt()]

    def look(*_: Any) -> Frame:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(command, "look", look)
    monkeypatch.setattr(Screen, "draw", lambda _, view: print(view.line()))
    monkeypatch.setattr(time, "sleep", lambda _: None)

    result = CliRunner().invoke(main, ["top", "--interval", "0.2"])

    said = result.stdout.splitlines()
    assert (0, 4) == (result.exit_code, len(said))
    assert "gone" == said[1]
    assert "1.0 jobs/s made" in said[3]


def test_a_database_out_of_reach_at_the_first_look_is_exit_code_three() -> None:
    assert 3 == CliRunner().invoke(main, ["--url", "postgresql://127.0.0.1:1/x", "top"]).exit_code
