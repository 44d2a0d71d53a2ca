"""Decisions as a function of one row and the time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.planning import Rules, Skipped, job_id, plan
from tests.unit.planning.rows import NEW_YEAR, RULES, at, decide, definition, due


def test_the_first_run_is_the_next_occurrence_after_the_definition() -> None:
    assert at("10:05") == plan(definition(planned_from=at("10:00")), RULES).next_run_at


def test_a_row_that_waited_for_a_beat_is_planned_from_its_definition_on_so_that_nothing_is_lost() -> None:
    row = definition(schedule="0 3 * * *", planned_from=at("02:59"))

    assert at("03:00") == plan(row, RULES).next_run_at


def test_an_interval_starts_one_step_after_its_anchor() -> None:
    row = definition(schedule="every 2s", anchor=at("10:00"), planned_from=at("10:00"))

    assert at("10:00:02") == plan(row, RULES).next_run_at


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": None},
        {"schedule": "2020-01-01T00:00:00"},
        {"end_at": at("10:03"), "planned_from": at("10:00")},
        {"max_runs": 3, "run_count": 3},
    ],
)
def test_a_row_without_a_further_run_is_planned_as_never(changes: dict[str, Any]) -> None:
    assert plan(definition(**changes), RULES).next_run_at is None


def test_the_bounds_are_inclusive() -> None:
    row = definition(start_at=at("12:00"), end_at=at("12:00"), planned_from=at("10:00"))

    assert at("12:00") == plan(row, RULES).next_run_at


def test_the_zone_of_the_row_wins_over_the_apps() -> None:
    rules = Rules(timezone="America/New_York", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
    row = definition(schedule="0 9 * * *", planned_from=at("00:00"))

    assert at("14:00") == plan(row, rules).next_run_at
    assert (
        at("08:00")
        == plan(definition(schedule="0 9 * * *", timezone="Europe/Berlin", planned_from=at("00:00")), rules).next_run_at
    )


@pytest.mark.parametrize(
    ("text", "minimum", "gap"),
    [
        ("every 0.1s", 1, "0.1 s"),
        ("PT0.5S", 1, "0.5 s"),
        ("calendar: *-*-* *:*:0/0.25", 1, "0.25 s"),
        ("calendar: *-*-* *:*:*", 60, "1 s"),
        ("*/10 * * * * *", 60, "10 s"),
        ("* * * * *", 300, "60 s"),
        ("RRULE:FREQ=SECONDLY", 60, "1 s"),
    ],
)
def test_a_schedule_below_the_minimum_is_refused_naming_the_setting(text: str, minimum: int, gap: str) -> None:
    row = definition(schedule=text)

    with pytest.raises(InvalidSchedule, match=f"a run every {gap} is faster than pgbeat_min_interval, {minimum} s"):
        plan(row, replace(RULES, min_interval=timedelta(seconds=minimum)))
    assert plan(row, replace(RULES, min_interval=timedelta(seconds=0.1))).next_run_at is not None


def test_a_message_may_wait_twice_the_gap_to_the_next_run_within_bounds() -> None:
    durations = [
        plan(definition(schedule=text), RULES).pickup_deadline for text in ("every 1s", "every 1h", "0 0 1 * *")
    ]

    assert [timedelta(minutes=15), timedelta(hours=2), timedelta(days=1)] == durations


def test_on_time_the_occurrence_is_decided_by_itself() -> None:
    decision = decide(due(at("12:00:20"), at("12:00")))

    assert (at("12:00"), "schedule", None, at("12:05")) == (
        decision.scheduled_for,
        decision.origin,
        decision.skipped,
        decision.next_run_at,
    )


def test_what_is_on_time_is_decided_oldest_first_even_if_the_next_one_is_due_too() -> None:
    decision = decide(due(at("12:00:20"), at("12:00"), schedule="every 5s"))

    assert (at("12:00"), at("12:00:05")) == (decision.scheduled_for, decision.next_run_at)


def test_after_six_hours_the_latest_is_sent_and_one_record_counts_the_others() -> None:
    decision = decide(due(at("12:02"), at("06:05"), last_run_at=at("06:00")))

    assert (at("12:00"), at("12:05")) == (decision.scheduled_for, decision.next_run_at)
    assert decision.skipped is not None
    assert (at("06:05"), at("11:55"), 71, "too_late") == (
        decision.skipped.first,
        decision.skipped.last,
        decision.skipped.count,
        decision.skipped.reason,
    )


def test_too_late_for_the_window_nothing_goes_out_and_all_are_counted() -> None:
    decision = decide(due(at("12:02"), at("06:05"), catchup_window=timedelta(seconds=60)))

    assert decision.job is None
    assert decision.skipped is not None
    assert (72, at("12:05")) == (decision.skipped.count, decision.next_run_at)


def test_catchup_none_sends_nothing_late() -> None:
    decision = decide(due(at("12:02"), at("12:00"), catchup="none"))

    assert (None, at("12:05")) == (decision.scheduled_for, decision.next_run_at)


def test_catchup_earliest_sends_the_oldest_that_the_window_allows() -> None:
    unbounded = decide(due(at("12:02"), at("06:05"), catchup="earliest"))
    bounded = decide(due(at("12:02"), at("06:05"), catchup="earliest", catchup_window=timedelta(hours=1)))

    assert at("06:05") == unbounded.scheduled_for
    assert at("11:05") == bounded.scheduled_for
    assert [decision.skipped.count for decision in (unbounded, bounded) if decision.skipped] == [71, 71]


def test_after_a_lapsed_mark_the_tick_is_on_time_for_one_more_lease() -> None:
    """The beat that had marked it died, and held it up for its lease of 15 s; 32 s are on time for all."""
    late = {"catchup": "none", "last_run_at": at("11:55")}
    in_time = decide(due(at("12:00:47"), at("12:00"), taken_over=True, **late))
    after = decide(due(at("12:00:48"), at("12:00"), taken_over=True, **late))
    never_marked = decide(due(at("12:00:33"), at("12:00"), **late))

    assert (at("12:00"), at("12:05"), None) == (in_time.scheduled_for, in_time.next_run_at, in_time.skipped)
    for decision in (after, never_marked):
        assert (None, Skipped(at("12:00"), at("12:00"), 1, "too_late")) == (decision.scheduled_for, decision.skipped)


def test_a_mark_of_this_morning_makes_nothing_on_time() -> None:
    """Marked at 09:00 by a beat that died; the next one comes at 15:00."""
    morning = {"schedule": "0 9 * * *", "taken_over": True}
    for policy in ({"catchup": "none"}, {"catchup_window": timedelta(hours=1)}):
        decision = decide(due(at("15:00"), at("09:00"), **morning, **policy))

        assert (None, Skipped(at("09:00"), at("09:00"), 1, "too_late")) == (decision.scheduled_for, decision.skipped)
    latest = decide(due(at("15:00"), at("09:00"), **morning))
    assert (at("09:00"), "catchup") == (latest.scheduled_for, latest.origin)


@pytest.mark.parametrize("catchup", ["none", "latest", "earliest", "all"])
@pytest.mark.parametrize("taken_over", [False, True])
def test_a_catchup_window_also_limits_what_is_on_time(catchup: str, taken_over: bool) -> None:
    policy = {"catchup": catchup, "catchup_window": timedelta(seconds=1), "taken_over": taken_over}
    within = decide(due(at("12:00:01"), at("12:00"), **policy))
    beyond = decide(due(at("12:00:02"), at("12:00"), **policy))

    assert at("12:00") == within.scheduled_for
    assert (None, Skipped(at("12:00"), at("12:00"), 1, "too_late")) == (beyond.scheduled_for, beyond.skipped)
    assert at("12:05") == beyond.next_run_at


def test_occurrences_that_a_short_catchup_window_drops_are_one_record() -> None:
    window = {"schedule": "every 1s", "catchup_window": timedelta(seconds=2), "last_run_at": at("12:00")}
    decision = decide(due(at("12:00:10"), at("12:00:01"), **window))

    assert Skipped(at("12:00:01"), at("12:00:07"), 7, "too_late") == decision.skipped
    assert (None, at("12:00:08")) == (decision.scheduled_for, decision.next_run_at)


def test_a_run_set_by_sql_goes_out_and_the_grid_goes_on() -> None:
    decision = decide(due(at("12:01"), at("12:01"), planned_for=None, last_run_at=at("12:00")))

    assert (at("12:01"), at("12:05")) == (decision.scheduled_for, decision.next_run_at)


def test_a_run_set_by_sql_at_or_before_the_last_one_decided_is_a_new_run_of_now() -> None:
    decision = decide(due(at("12:01"), at("09:00"), planned_for=None, last_run_at=at("12:00")))

    assert (at("12:01"), "schedule", None, at("12:05")) == (
        decision.scheduled_for,
        decision.origin,
        decision.skipped,
        decision.next_run_at,
    )


def test_with_the_clock_set_back_a_new_run_is_still_later_than_the_last() -> None:
    decision = decide(due(at("11:00"), at("10:59"), planned_for=None, last_run_at=at("12:00")))

    assert decision.scheduled_for is not None
    assert decision.scheduled_for > at("12:00")


def test_a_run_set_far_into_the_past_catches_nothing_up_from_before_the_definition() -> None:
    row = due(at("12:02"), datetime(2020, 1, 1, tzinfo=timezone.utc), planned_for=None, planned_from=at("11:50"))

    decision = decide(row)

    assert decision.skipped is not None
    assert (at("12:00"), 2) == (decision.scheduled_for, decision.skipped.count)


def test_a_run_set_by_sql_before_the_start_does_not_begin_the_schedule_early() -> None:
    row = due(at("12:01"), at("12:01"), planned_for=None, start_at=at("10:00", 8))

    assert at("10:00", 8) == decide(row).next_run_at


def test_a_row_without_a_schedule_runs_once_when_triggered() -> None:
    decision = decide(due(at("12:00"), at("12:00"), schedule=None, planned_for=None))

    assert (at("12:00"), None) == (decision.scheduled_for, decision.next_run_at)


def test_the_count_is_arithmetic_a_second_schedule_down_for_ten_years_is_decided_at_once() -> None:
    row = due(
        at("12:00"),
        datetime(2016, 12, 7, tzinfo=timezone.utc),
        schedule="every 1s",
        anchor=datetime(2016, 1, 1, tzinfo=timezone.utc),
        planned_from=datetime(2016, 1, 1, tzinfo=timezone.utc),
    )

    decision = decide(row)

    assert decision.skipped is not None
    assert decision.skipped.count > 300_000_000


def test_a_refused_decision_keeps_its_occurrence_in_the_record() -> None:
    decision = decide(due(at("12:00"), at("12:00"))).refused("not_allowed")

    assert decision.job is None
    assert decision.skipped is not None
    assert (1, "not_allowed", at("12:05")) == (decision.skipped.count, decision.skipped.reason, decision.next_run_at)


def test_the_id_of_a_tick_is_the_same_from_every_beat_and_another_for_a_new_row() -> None:
    assert job_id("a", NEW_YEAR, at("12:00")) == job_id(
        "a", NEW_YEAR.astimezone(timezone(timedelta(hours=5))), at("12:00")
    )
    assert job_id("a", NEW_YEAR, at("12:00")) != job_id("a", at("00:00"), at("12:00"))
    assert job_id("a", NEW_YEAR, at("12:00")) != job_id("b", NEW_YEAR, at("12:00"))
