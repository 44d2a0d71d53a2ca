"""The coming runs of one row, told in advance: just those that planning and deciding make of it."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pytest

from celery_pgbeat.api import Upcoming
from celery_pgbeat.api.ahead import coming_runs
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.planning import Decision, Due, PlanningRow, Unplanned, decide, plan
from tests.unit.planning.rows import MARKED, RULES

NIGHT = ["0 0 * * * PT5H"]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


NOW = at("2026-12-07T10:07")
COLUMNS: dict[str, Any] = {
    "name": "nightly",
    "schedule": "0 */2 * * *",
    "timezone": None,
    "anchor": NOW,
    "dst": "default",
    "start_at": None,
    "end_at": None,
    "max_runs": None,
    "run_count": 0,
    "jitter": None,
    "blackout": None,
    "blackout_action": "defer",
    "windows": None,
    "held_back": None,
    "revision": 3,
    "planned_from": NOW,
    "judged_from": None,
    "enabled": True,
    "problem": None,
    "planned_revision": 0,
    "next_run_at": None,
    "planned_for": None,
    "last_run_at": None,
    "planned_ahead": None,
    "now": NOW,
}


def coming(number: int = 3, **columns: Any) -> list[Upcoming]:
    """Return the coming runs of a row that no beat has planned yet."""
    return list(islice(coming_runs({**COLUMNS, **columns}, RULES), number))


def planned(next_run_at: str, planned_for: str | None, number: int = 3, **columns: Any) -> list[Upcoming]:
    """Return the coming runs of a row that a beat has planned, or SQL."""
    stored = {"next_run_at": at(next_run_at), "planned_for": None if planned_for is None else at(planned_for)}
    return coming(number, **{"planned_revision": 3, **stored, **columns})


def run(due: str, planned_for: str | None = None, note: str | None = None, *, by_hand: bool = False) -> Upcoming:
    nominal = None if by_hand else at(planned_for or due)
    return Upcoming("nightly", at(due), nominal, note)


def sent_by_a_beat(row: dict[str, Any]) -> list[tuple[datetime, datetime]]:
    """Return when, and for which occurrence, a beat sends the jobs of a row, that is always there in time."""
    record = {**row, "windows": json.loads(row["windows"] or "{}")}
    definition = Unplanned(**{column.name: record[column.name] for column in fields(Unplanned)})
    first = plan(definition, RULES)
    next_run_at, planned_for, decided = first.next_run_at, first.planned_for, None
    sent = []
    while next_run_at is not None:
        due = Due(
            **{column.name: record[column.name] for column in fields(PlanningRow)},
            **MARKED,
            next_run_at=next_run_at,
            planned_for=planned_for,
            last_run_at=decided,
            marked_at=next_run_at,
        )
        decision = decide(due, RULES)
        if isinstance(decision, Decision):
            if decision.job is not None:
                sent.append((next_run_at, decision.scheduled_for))
            decided = decision.decided_until
        next_run_at, planned_for = decision.next_run_at, decision.planned_for
    return sent


def test_a_row_that_is_not_planned_yet_runs_as_a_beat_will_plan_it() -> None:
    assert [run("2026-12-07T12:00"), run("2026-12-07T14:00"), run("2026-12-07T16:00")] == coming()


def test_the_runs_stay_within_the_bounds_of_the_row() -> None:
    bounds = {"start_at": at("2026-12-08T02:00"), "end_at": at("2026-12-08T04:00")}

    assert [run("2026-12-08T02:00"), run("2026-12-08T04:00")] == coming(**bounds)


@pytest.mark.parametrize(("run_count", "left"), [(0, 3), (2, 1), (3, 0), (7, 0)])
def test_no_more_runs_come_than_the_row_has_left(run_count: int, left: int) -> None:
    assert left == len(coming(10, max_runs=3, run_count=run_count))


def test_jitter_moves_each_run_and_is_shown() -> None:
    runs = coming(jitter=timedelta(minutes=10))

    assert [at("2026-12-07T12:00"), at("2026-12-07T14:00"), at("2026-12-07T16:00")] == [
        each.planned_for for each in runs
    ]
    assert all(each.planned_for < each.next_run_at < each.planned_for + timedelta(minutes=10) for each in runs)  # type: ignore[operator]
    assert {"spread by the jitter"} == {each.note for each in runs}


def test_what_a_window_holds_back_runs_once_when_it_closes_under_the_latest_of_it() -> None:
    held_back = "held back by a blackout window, together with 2 earlier occurrences"

    assert [
        run("2026-12-07T22:00"),
        run("2026-12-08T05:00", "2026-12-08T04:00", held_back),
        run("2026-12-08T06:00"),
    ] == coming(blackout=NIGHT, planned_from=at("2026-12-07T20:30"))


def test_a_single_occurrence_in_a_window_has_no_company() -> None:
    (first,) = coming(1, blackout=NIGHT, schedule="30 2 * * *")

    assert run("2026-12-08T05:00", "2026-12-08T02:30", "held back by a blackout window") == first


def test_what_a_window_skips_is_left_out() -> None:
    skips = {"blackout": NIGHT, "blackout_action": "skip", "planned_from": at("2026-12-07T20:30")}

    assert [run("2026-12-07T22:00"), run("2026-12-08T06:00"), run("2026-12-08T08:00")] == coming(**skips)
    assert [] == coming(schedule="30 2 * * *", **skips)


def test_named_windows_count_in_their_own_zone_or_in_that_of_the_row() -> None:
    named = {"night": [NIGHT, None], "tokyo": [NIGHT, "Asia/Tokyo"]}
    columns = {"windows": json.dumps(named), "schedule": "30 2 * * *", "timezone": "Europe/Berlin"}

    assert at("2026-12-08T04:00") == coming(1, blackout=["window: night"], **columns)[0].next_run_at
    assert at("2026-12-08T01:30") == coming(1, blackout=["window: tokyo"], **columns)[0].next_run_at


def test_the_nights_on_which_the_clocks_change_are_told() -> None:
    spring = {"timezone": "Europe/Berlin", "schedule": "30 2 * * *", "planned_from": at("2027-03-27T12:00")}
    note = "the clocks go forward from 02:00 to 03:00: 02:30 does not exist, so it runs right after"

    assert [run("2027-03-28T01:00", None, note), run("2027-03-29T00:30")] == coming(2, **spring)
    assert f"{note}; held back by a blackout window" == coming(1, blackout=NIGHT, **spring)[0].note


def test_the_run_that_is_planned_is_the_first() -> None:
    assert [run("2026-12-07T14:00"), run("2026-12-07T16:00"), run("2026-12-07T18:00")] == planned(
        "2026-12-07T14:00", "2026-12-07T14:00"
    )


def test_a_run_that_sql_has_set_comes_first_and_the_schedule_goes_on_after_it() -> None:
    set_by_sql = run("2026-12-09T09:30", note="next_run_at was set, not planned", by_hand=True)

    assert [set_by_sql, run("2026-12-09T10:00"), run("2026-12-09T12:00")] == planned("2026-12-09T09:30", None)
    assert [set_by_sql] == planned("2026-12-09T09:30", None, schedule=None)


def test_a_run_that_sql_has_set_into_a_window_waits_for_its_end_or_is_skipped() -> None:
    waits = run("2026-12-09T05:00", note="held back by a blackout window", by_hand=True)

    assert [waits, run("2026-12-09T06:00")] == planned("2026-12-09T02:30", None, 2, blackout=NIGHT)
    assert [run("2026-12-09T06:00")] == planned("2026-12-09T02:30", None, 1, blackout=NIGHT, blackout_action="skip")


def test_an_overdue_run_says_so_and_what_was_missed_since_is_decided_with_it() -> None:
    overdue = run("2026-12-06T14:00", note="overdue")

    assert [overdue, run("2026-12-07T12:00"), run("2026-12-07T14:00")] == planned(
        "2026-12-06T14:00", "2026-12-06T14:00"
    )


@pytest.mark.parametrize("action", ["defer", "skip"])
def test_an_overdue_run_waits_for_the_end_of_the_window_that_has_opened_meanwhile(action: str) -> None:
    columns = {"blackout": ["0 9 * * * PT4H"], "blackout_action": action}
    (first,) = planned("2026-12-07T06:00", "2026-12-07T06:00", 1, **columns)

    assert run("2026-12-07T13:00", "2026-12-07T06:00", "held back by a blackout window") == first


def test_a_run_that_a_beat_has_postponed_is_held_back() -> None:
    """A beat that was away met a window, and put off what it missed to the window's end."""
    held_back = "held back by a blackout window"

    assert [
        run("2026-12-07T13:00", "2026-12-07T06:00", held_back),
        run("2026-12-07T13:00", "2026-12-07T12:00", f"{held_back}, together with 1 earlier occurrence"),
        run("2026-12-07T14:00"),
    ] == planned(
        "2026-12-07T13:00", "2026-12-07T06:00", blackout=["0 9 * * * PT4H"], planned_from=at("2026-12-01T00:00")
    )


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"jitter": timedelta(minutes=30)},
        {"blackout": NIGHT},
        {"blackout": NIGHT, "jitter": timedelta(minutes=90)},
        {"blackout": NIGHT, "blackout_action": "skip", "jitter": timedelta(minutes=90)},
        {"blackout": ["window: night", "0 0 * * sat P2D"], "windows": '{"night": [["0 22 * * * PT7H"], "Asia/Tokyo"]}'},
    ],
)
@pytest.mark.parametrize("schedule", ["*/7 * * * *", "30 2 * * *", "every 50m"])
def test_the_predicted_runs_are_those_that_beats_decide(schedule: str, columns: dict[str, Any]) -> None:
    """A beat that plans the row and decides each occurrence at its instant sends just these jobs."""
    row = {**COLUMNS, "schedule": schedule, "end_at": at("2026-12-14T00:00"), **columns}

    told = [(each.next_run_at, each.planned_for) for each in coming_runs(row, RULES)]

    assert sent_by_a_beat(row) == told


@pytest.mark.parametrize(
    "columns",
    [{"enabled": False}, {"problem": "why"}, {"planned_revision": 3}, {"schedule": None}, {"schedule": "2026-12-01"}],
)
def test_a_row_that_waits_for_nothing_has_no_coming_runs(columns: dict[str, Any]) -> None:
    assert [] == coming(**columns)


def test_a_row_that_cannot_be_planned_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="hour 25 is not in 0-23"):
        coming(schedule="0 25 * * *")
