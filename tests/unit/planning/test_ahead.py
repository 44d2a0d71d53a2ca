"""What a decision plans ahead, so that a mark can submit it at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from celery_pgbeat import planning
from celery_pgbeat.planning import Decision
from celery_pgbeat.planning.ahead import FREE_FOR, FURTHEST_AHEAD, MOST_AHEAD
from tests.unit.planning.rows import RULES, at, decide, due

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
WINDOWS = {"w": (["30 16 * * * PT1H"], None)}
PATIENT = replace(RULES, on_time=FREE_FOR)


def planned(**columns: Any) -> tuple[datetime, ...]:
    return decide(due(at("12:00:01"), at("12:00"), **columns)).planned_ahead


def test_the_next_run_and_those_after_it_are_planned() -> None:
    row = due(at("12:00:01"), at("12:00"), schedule="*/5 * * * *")

    decision = decide(row)

    expected = [at("12:05") + 5 * number * MINUTE for number in range(MOST_AHEAD + 1)]
    assert (expected, ()) == ([*decision.planned_ahead], decision.due_ahead)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"jitter": 90 * SECOND},
        {"jitter": 366 * 24 * 60 * MINUTE},
        {"blackout": ["0 15 * * * PT1H"]},
        {"blackout": ["0 15 * * * PT1H", "window: w"], "blackout_action": "skip", "windows": WINDOWS},
        {"blackout": ["3,17,40 14-15 * * * PT30S"], "jitter": 3 * MINUTE, "blackout_action": "skip"},
    ],
)
def test_what_is_planned_ahead_is_what_would_be_decided_one_after_the_other(columns: dict[str, Any]) -> None:
    columns = {"schedule": "*/7 9-17 * * *", "timezone": "Europe/Berlin", **columns}
    decision = decide(due(at("11:56"), at("11:56"), **columns))
    chain: list[Decision] = [decision]
    for _ in decision.planned_ahead[1:]:
        occurrence, due_at = chain[-1].planned_for, chain[-1].next_run_at
        assert occurrence is not None
        assert due_at is not None
        for late in (timedelta(), FREE_FOR):
            one = planning.decide(due(due_at + late, due_at, planned_for=occurrence, **columns), PATIENT)
            assert isinstance(one, Decision)
            assert (occurrence, due_at, None) == (one.scheduled_for, one.due_at, one.skipped)
        chain.append(one)

    assert decision.planned_ahead
    assert [one.planned_for for one in chain] == list(decision.planned_ahead)
    assert [one.next_run_at for one in chain] == list(decision.due_ahead or decision.planned_ahead)


def test_the_last_run_that_is_planned_ahead_is_the_first_that_a_window_may_move() -> None:
    """Within a minute after the one of 14:59 a window opens: a beat decides about it."""
    night = decide(due(at("14:55"), at("14:55"), schedule="* * * * *", blackout=["0 15 * * * PT1H"]))
    moved = decide(due(at("12:00"), at("12:00"), schedule="0 * * * *", blackout=["30 14 * * * PT1H"]))

    assert (at("14:56"), at("14:57"), at("14:58"), at("14:59")) == night.planned_ahead
    assert (at("13:00"), at("14:00"), at("15:00")) == moved.planned_ahead
    assert (at("13:00"), at("14:00"), at("15:30")) == moved.due_ahead


@pytest.mark.parametrize(
    "columns",
    [
        {"blackout": ["2 12 * * * PT2H"]},
        {"schedule": None},
        {"schedule": "0 12 * * *"},
        {"schedule": "2026-12-07T12:00Z"},
        {"task": ""},
        {"end_at": at("12:05")},
        {"schedule": None, "comes_after": True},
    ],
)
def test_nothing_is_planned_ahead_of_a_row_that_has_to_be_decided_each_time(columns: dict[str, Any]) -> None:
    assert () == planned(**columns)


def test_nothing_is_planned_after_the_end_of_a_row_nor_further_than_a_day_ahead() -> None:
    assert (at("12:05"), at("12:10"), at("12:15")) == planned(end_at=at("12:19"))
    hourly = planned(schedule="0 */6 * * *")
    assert (at("18:00"), at("00:00", day=8), at("06:00", day=8), at("12:00", day=8)) == hourly
    assert hourly[-1] <= at("12:00:01") + FURTHEST_AHEAD
