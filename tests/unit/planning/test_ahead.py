"""What a decision plans ahead, so that a mark can submit it at once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from celery_pgbeat.planning import Decision, job_id
from celery_pgbeat.planning.ahead import FURTHEST_AHEAD, MOST_AHEAD
from tests.unit.planning.rows import at, decide, due

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def planned(**columns: Any) -> tuple[datetime, ...]:
    return decide(due(at("12:00:01"), at("12:00"), **columns)).planned_ahead


def test_the_occurrences_after_the_next_run_are_planned_with_the_ids_of_their_jobs() -> None:
    row = due(at("12:00:01"), at("12:00"), schedule="*/5 * * * *")

    decision = decide(row)

    expected = [at("12:05") + 5 * number * MINUTE for number in range(MOST_AHEAD + 1)]
    assert expected == [decision.planned_for, *decision.planned_ahead]
    ids = [job_id(row.name, row.created_at, instant).hex for instant in expected[:-1]]
    assert ids == list(decision.jobs_ahead)


def test_what_is_planned_ahead_is_what_would_be_decided_one_after_the_other() -> None:
    decision = decide(due(at("12:00"), at("12:00"), schedule="*/7 9-17 * * *", timezone="Europe/Berlin"))
    chain: list[Decision] = [decision]
    for _ in decision.planned_ahead:
        instant = chain[-1].planned_for
        assert instant is not None
        chain.append(decide(due(instant, instant, schedule="*/7 9-17 * * *", timezone="Europe/Berlin")))

    assert decision.planned_ahead == tuple(one.planned_for for one in chain[1:])
    jobs = [one.job.hex for one in chain[1:] if one.job is not None]
    assert jobs == list(decision.jobs_ahead)


@pytest.mark.parametrize(
    "columns",
    [
        {"jitter": SECOND},
        {"blackout": ["0 3 * * * PT1H"]},
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
    assert (at("12:10"), at("12:15")) == planned(end_at=at("12:19"))
    hourly = planned(schedule="0 */6 * * *")
    assert (at("00:00", day=8), at("06:00", day=8), at("12:00", day=8)) == hourly
    assert hourly[-1] <= at("12:00:01") + FURTHEST_AHEAD
