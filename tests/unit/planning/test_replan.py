"""A row that is planned again by other time zone tables: nothing that it was to run is lost, and nothing runs twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from celery_pgbeat import planning
from tests.unit.planning.rows import RULES, at, definition

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def planned_again(planned_for: datetime, now: datetime, last_run_at: datetime | None, **columns: Any) -> Any:
    """Return the occurrence and when it is due; the tables had another offset when `planned_for` was planned."""
    row = definition(**{"planned_for": planned_for, "now": now, "last_run_at": last_run_at, **columns})
    planned = planning.plan(row, RULES)
    assert planned_for == planned.replaces
    return planned.planned_for, planned.next_run_at


@pytest.mark.parametrize(
    ("schedule", "earlier", "later"),
    [
        ("0 9 * * *", at("9:00"), at("9:00", 8)),
        ("CRON_TZ=Europe/Berlin 0 10 * * *", at("9:00"), at("9:00", 8)),
        ("0 9 1 * *", at("9:00", 1), at("9:00", 1) + 31 * DAY),
        ("*-*-* 09:00 UTC", at("9:00"), at("9:00", 8)),
        ("RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", at("9:00"), at("9:00", 8)),
        ("crontab: 0 9 * * *", at("9:00"), at("9:00", 8)),
        ("R/2026-01-01T09:00:00/P1D", at("9:00"), at("9:00", 8)),
    ],
)
def test_a_run_of_nine_is_at_nine_by_the_new_tables(schedule: str, earlier: datetime, later: datetime) -> None:
    columns = {"schedule": schedule, "timezone": "UTC"}
    half_past = earlier + HOUR / 2

    assert (later, later) == planned_again(later - HOUR, half_past, earlier - HOUR, **columns), "not again today"
    assert (later, later) == planned_again(later + HOUR, later - 2 * HOUR, earlier + HOUR, **columns)
    assert (earlier, earlier) == planned_again(earlier + HOUR, half_past, earlier - DAY, **columns), "not lost"


def test_a_single_date_moves_to_its_new_instant_and_runs_once() -> None:
    columns = {"schedule": "2026-12-07 09:00", "timezone": "UTC"}
    assert (at("9:00"), at("9:00")) == planned_again(at("10:00"), at("8:00"), None, **columns)
    assert (at("9:00"), at("9:00")) == planned_again(at("8:00"), at("7:00"), None, **columns)
    assert (at("9:00"), at("9:00")) == planned_again(at("10:00"), at("9:30"), None, **columns), "it is late, not lost"

    early = {**columns, "planned_from": at("9:30")}
    assert (at("10:00"), at("10:00")) == planned_again(at("10:00"), at("9:45"), None, **early), "defined after nine"


@pytest.mark.parametrize("schedule", ["*/15 * * * *", "every 15m", "PT15M", "0 * * * *"])
def test_what_is_an_occurrence_by_both_tables_stays(schedule: str) -> None:
    noon = at("12:00")
    assert (noon, noon) == planned_again(noon, noon - HOUR / 4, noon - HOUR, schedule=schedule)


def test_what_is_due_is_decided_as_it_was_planned_or_put_off_never_made_late() -> None:
    daily: dict[str, Any] = {"schedule": "0 9 * * *", "last_run_at": at("10:00", 6)}
    assert (at("10:00"), at("10:00")) == planned_again(at("10:00"), at("10:00:05"), **daily)
    assert (at("9:00"), at("9:00")) == planned_again(at("8:00"), at("8:00:05"), **daily)


def test_what_a_window_holds_back_is_still_held_back() -> None:
    columns = {"schedule": "0 9 * * *", "blackout": ["0 7 * * * PT4H"]}
    assert (at("8:00"), at("11:00")) == planned_again(at("8:00"), at("8:30"), at("8:00", 6), **columns)


def test_a_window_of_a_zone_that_changed_closes_at_its_new_time() -> None:
    """The occurrence is the same, its window ended at 10:00 by the old tables."""
    columns = {"schedule": "0 9 * * *", "blackout": ["0 7 * * * PT4H"]}
    row = definition(planned_for=at("9:00"), now=at("5:00"), last_run_at=at("9:00", 6), **columns)
    assert (at("9:00"), at("11:00")) == (
        (planned := planning.plan(row, RULES)).planned_for,
        planned.next_run_at,
    )


def test_bounds_hold_for_the_new_instant() -> None:
    columns: dict[str, Any] = {"schedule": "0 9 * * *", "last_run_at": at("8:00", 6), "now": at("12:00", 6)}
    assert (None, None) == planned_again(at("8:00"), end_at=at("8:30"), **columns)
    assert (None, None) == planned_again(at("8:00"), max_runs=3, run_count=3, **columns)


@pytest.mark.parametrize(
    ("schedule", "readings"),
    [
        ("0,30 9,11 * * *", ["9:00", "9:30", "11:00", "11:30"]),
        ("0 9,10,11 * * *", ["9:00", "10:00", "11:00"]),
        ("0 9,11,13 * * *", ["9:00", "11:00", "13:00"]),
        ("*/20 9 * * *", ["9:00", "9:20", "9:40"]),
        ("0 9-17 * * *", [f"{hour}:00" for hour in range(9, 18)]),
    ],
)
@pytest.mark.parametrize("shift", [-HOUR, HOUR, HOUR / 2, -HOUR / 2, 2 * HOUR])
def test_of_several_runs_a_day_each_keeps_its_reading(schedule: str, readings: list[str], shift: timedelta) -> None:
    """Whatever the next one is when the tables change: what was decided is not decided again, no other is lost."""
    days = [[at(reading, day) for reading in readings] for day in (6, 7, 8)]
    new = [instant for day in days for instant in day]
    for place in range(len(readings), 2 * len(readings)):
        old = [instant - shift for instant in new]
        planned = planning.plan(
            definition(
                schedule=schedule,
                planned_for=old[place],
                last_run_at=old[place - 1],
                planned_ahead=old[place + 1 : place + len(readings)],
                now=old[place - 1] + HOUR / 12,
            ),
            RULES,
        )
        # An instant that the last decision of the old tables has passed cannot be submitted any more.
        expected = next(instant for instant in new[place:] if instant > old[place - 1])
        assert (readings[place % len(readings)], expected) == (readings[place % len(readings)], planned.planned_for)
