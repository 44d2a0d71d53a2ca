"""When an occurrence is due: its nominal instant, its jitter, and the windows that it may not fall into."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.planning import Decision, Postponed, due_times_of, plan
from celery_pgbeat.planning import decide as decide_or_postpone
from celery_pgbeat.schedules import parse
from tests.unit.planning.rows import RULES, at, decide, definition, due

NIGHT = ("0 0 * * * PT5H",)
WEEKEND = ("0 0 * * sat P2D",)


def test_jitter_is_stable_for_a_row_and_an_occurrence_and_differs_between_rows() -> None:
    spread = {
        name: due_times_of(definition(name=name, jitter=timedelta(minutes=4)), RULES).due_at(at("12:00"))
        for name in map(str, range(100))
    }

    assert all(at("12:00") <= instant <= at("12:04") for instant in spread.values())
    assert len(set(spread.values())) > 90
    again = due_times_of(definition(name="7", jitter=timedelta(minutes=4)), RULES).due_at(at("12:00"))
    assert spread["7"] == again


def test_jitter_never_reaches_the_next_occurrence_however_long_it_is() -> None:
    line = due_times_of(definition(jitter=timedelta(days=1)), RULES)
    occurrences = [at("12:00") + timedelta(minutes=5 * n) for n in range(200)]

    for one, another in pairwise(occurrences):
        assert one <= line.due_at(one) < another


def test_jitter_changes_when_an_occurrence_is_due_and_not_the_occurrence() -> None:
    row = definition(planned_from=at("12:01"), jitter=timedelta(minutes=4))
    planned = plan(row, RULES)
    assert planned.next_run_at is not None
    assert at("12:05") == planned.planned_for
    assert at("12:05") < planned.next_run_at < at("12:09:00")

    decision = decide(
        due(planned.next_run_at + timedelta(seconds=1), planned.next_run_at, planned_for=at("12:05"), jitter=row.jitter)
    )

    assert (at("12:05"), at("12:10"), planned.next_run_at) == (
        decision.scheduled_for,
        decision.planned_for,
        decision.due_at,
    )


def test_a_run_that_falls_into_the_night_is_due_at_its_end_and_keeps_its_instant() -> None:
    planned = plan(definition(schedule="30 2 * * *", planned_from=at("00:00"), blackout=NIGHT), RULES)

    assert (at("05:00"), at("02:30")) == (planned.next_run_at, planned.planned_for)
    decision = decide(due(at("05:00"), at("05:00"), schedule="30 2 * * *", planned_for=at("02:30"), blackout=NIGHT))
    assert (at("02:30"), None, at("05:00", 8), at("02:30", 8)) == (
        decision.scheduled_for,
        decision.skipped,
        decision.next_run_at,
        decision.planned_for,
    )


def test_occurrences_that_a_window_delayed_are_sent_once_for_the_latest() -> None:
    """B-3: thirty blocked ticks of `*/10` merge into one at 05:00, which is an occurrence itself."""
    row = due(at("05:00"), at("05:00"), schedule="*/10 * * * *", planned_for=at("00:00"), blackout=NIGHT)

    decision = decide(row)

    assert (at("05:00"), at("05:10")) == (decision.scheduled_for, decision.next_run_at)
    assert decision.skipped is not None
    assert (at("00:00"), at("04:50"), 30, "blackout") == (
        decision.skipped.first,
        decision.skipped.last,
        decision.skipped.count,
        decision.skipped.reason,
    )


def test_the_last_before_the_night_is_followed_by_the_one_at_its_end() -> None:
    decision = decide(due(at("23:50"), at("23:50"), schedule="*/10 * * * *", blackout=NIGHT))

    assert (at("23:50"), at("05:00", 8), at("00:00", 8)) == (
        decision.scheduled_for,
        decision.next_run_at,
        decision.planned_for,
    )


def test_a_window_is_half_open() -> None:
    """B-4: 00:00 is blocked, 05:00 is free."""
    line = due_times_of(definition(blackout=NIGHT), RULES)

    assert (at("05:00"), at("05:00")) == (line.due_at(at("00:00")), line.due_at(at("05:00")))
    assert at("23:55") == line.due_at(at("23:55"))


def test_skip_records_all_occurrences_in_a_window_once() -> None:
    """B-3: nothing at 05:00 from the one of 02:30."""
    night = {"schedule": "*/10 * * * *", "blackout": NIGHT, "blackout_action": "skip"}
    postponed = decide_or_postpone(due(at("00:00"), at("00:00"), **night), RULES)
    assert isinstance(postponed, Postponed)
    assert (at("00:00"), at("05:00")) == (postponed.planned_for, postponed.next_run_at)

    decision = decide(due(at("05:00"), at("05:00"), planned_for=at("00:00"), **night))

    assert (None, at("05:00"), at("05:00")) == (decision.scheduled_for, decision.next_run_at, decision.planned_for)
    assert decision.skipped is not None
    assert (30, "blackout", at("04:50")) == (decision.skipped.count, decision.skipped.reason, decision.skipped.last)
    columns = {**night, "schedule": "30 2 * * *"}
    single = due(at("05:00"), at("05:00"), planned_for=at("02:30"), **columns)
    assert (None, at("02:30", 8)) == (decide(single).scheduled_for, decide(single).next_run_at)


def test_a_run_set_by_sql_inside_a_window_comes_again_at_its_end() -> None:
    """B-1: set to now on a Saturday, it runs on Monday at 00:00."""
    saturday = datetime(2026, 12, 5, 10, tzinfo=timezone.utc)
    row = due(saturday, saturday, schedule=None, planned_for=None, blackout=WEEKEND)

    postponed = decide_or_postpone(row, RULES)

    assert isinstance(postponed, Postponed)
    assert (saturday, at("00:00")) == (postponed.planned_for, postponed.next_run_at)
    monday = due(at("00:00"), at("00:00"), schedule=None, planned_for=saturday, blackout=WEEKEND)
    assert saturday == decide(monday).scheduled_for


def test_a_run_set_by_sql_inside_a_window_is_skipped_under_skip() -> None:
    row = due(at("05:00"), at("05:00"), planned_for=at("02:00:30"), blackout=NIGHT, blackout_action="skip")

    decision = decide(row)

    assert (None, at("05:00")) == (decision.scheduled_for, decision.next_run_at)
    assert decision.skipped is not None
    assert (36, "blackout") == (decision.skipped.count, decision.skipped.reason)


def test_what_was_missed_before_a_window_waits_for_its_end() -> None:
    row = due(at("01:00", 8), at("23:50"), schedule="*/10 * * * *", blackout=NIGHT)

    postponed = decide_or_postpone(row, RULES)

    assert isinstance(postponed, Postponed)
    assert (at("23:50"), at("05:00", 8)) == (postponed.planned_for, postponed.next_run_at)
    late = due(at("05:00", 8), at("05:00", 8), schedule="*/10 * * * *", planned_for=at("23:50"), blackout=NIGHT)
    decision = decide(late)
    assert (at("23:50"), "catchup", at("05:00", 8)) == (decision.scheduled_for, decision.origin, decision.next_run_at)


def test_a_window_that_is_newer_than_the_plan_applies() -> None:
    postponed = decide_or_postpone(due(at("02:30"), at("02:30"), blackout=NIGHT), RULES)

    assert isinstance(postponed, Postponed)
    assert (at("02:30"), at("05:00")) == (postponed.planned_for, postponed.next_run_at)


def test_a_tick_that_comes_too_late_for_the_moment_before_a_window_waits_for_its_end() -> None:
    postponed = decide_or_postpone(due(at("00:00:10", 8), at("23:59:50"), blackout=NIGHT, taken_over=True), RULES)

    assert isinstance(postponed, Postponed)
    assert at("05:00", 8) == postponed.next_run_at


def test_what_a_named_window_held_back_is_planned_first_when_that_is_changed() -> None:
    row = definition(schedule="30 2 * * *", planned_from=at("03:00"), blackout=["0 0 * * * PT4H"])

    planned = plan(replace(row, held_back=at("02:30")), RULES)

    assert (at("04:00"), at("02:30")) == (planned.next_run_at, planned.planned_for)


def test_of_the_missed_occurrences_the_latest_outside_the_windows_is_sent() -> None:
    """Down from 22:00 to 05:02: what fell into the night is passed over, so the latest is that of 23:50."""
    row = due(
        at("05:05", 8),
        at("22:00"),
        schedule="50 23,0-4 * * *",
        planned_for=at("23:50"),
        blackout=NIGHT,
        blackout_action="skip",
    )

    decision = decide(row)

    assert (at("23:50"), at("23:50", 8)) == (decision.scheduled_for, decision.next_run_at)
    assert decision.skipped is not None
    assert (5, "too_late") == (decision.skipped.count, decision.skipped.reason)


def test_the_windows_of_a_name_are_read_in_their_own_zone_or_the_rows() -> None:
    own = definition(blackout=["window: night"], windows={"night": (NIGHT, "America/New_York")})
    rows = definition(blackout=["window: night"], windows={"night": (NIGHT, None)}, timezone="Europe/Berlin")

    assert at("10:00") == due_times_of(own, RULES).due_at(at("05:00"))
    assert at("04:00") == due_times_of(rows, RULES).due_at(at("03:55"))


def test_a_window_that_is_not_defined_is_a_problem_of_the_row() -> None:
    with pytest.raises(InvalidSchedule, match="there is no blackout window named 'night'"):
        plan(definition(blackout=["window: night"]), RULES)


@given(
    text=st.sampled_from(["every 7s", "every 7m", "*/5 * * * *", "30 2 * * *", "0 9 * * 1-5", "every 1h30m"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    away=st.lists(st.timedeltas(timedelta(0), timedelta(days=3)), min_size=1, max_size=12),
    catchup=st.sampled_from(["none", "latest", "earliest", "all"]),
    limit=st.sampled_from([None, 1, 7]),
    window=st.one_of(st.none(), st.timedeltas(timedelta(0), timedelta(days=1))),
    jitter=st.sampled_from([None, timedelta(minutes=3), timedelta(days=2)]),
    blackout=st.sampled_from([None, NIGHT, WEEKEND, (*NIGHT, *WEEKEND), ("*/10 * * * * PT4M",)]),
    action=st.sampled_from(["defer", "skip"]),
)
def test_every_occurrence_is_accounted_for_exactly_once(
    text: str,
    zone: str,
    away: list[timedelta],
    catchup: str,
    limit: int | None,
    window: timedelta | None,
    jitter: timedelta | None,
    blackout: tuple[str, ...] | None,
    action: str,
) -> None:
    """However long nobody looked: what went out and what was counted are all the occurrences there were.

    And nothing that went out did so inside a window, or before its time.
    """
    start = datetime(2026, 10, 24, tzinfo=timezone.utc)
    columns: dict[str, Any] = {
        "schedule": text,
        "timezone": zone,
        "planned_from": start,
        "anchor": start,
        "jitter": jitter,
        "blackout": blackout,
        "blackout_action": action,
    }
    line = due_times_of(definition(**columns), RULES)
    first = plan(definition(**columns), RULES)
    next_run_at, planned_for = first.next_run_at, first.planned_for
    last, now, counted = None, start, 0
    for gap in away:
        assert next_run_at is not None
        now = max(now + gap, next_run_at)
        for _ in range(12):
            row = due(
                now,
                next_run_at,
                planned_for=planned_for,
                last_run_at=last,
                catchup=catchup,
                catchup_window=window,
                catchup_limit=limit,
                **columns,
            )
            decision = decide_or_postpone(row, RULES)
            next_run_at, planned_for = decision.next_run_at, decision.planned_for
            assert next_run_at is not None
            assert planned_for is not None
            if isinstance(decision, Decision):
                counted += (decision.job is not None) + (decision.skipped.count if decision.skipped else 0)
                assert last is None or decision.decided_until > last
                assert planned_for > decision.decided_until
                last = decision.decided_until
                if decision.scheduled_for is not None:
                    assert decision.due_at is not None
                    assert decision.scheduled_for <= decision.due_at <= now
                    assert action == "defer" or not line.is_blacked_out(line.with_jitter(decision.scheduled_for))
                    assert not line.is_blacked_out(now) or now - decision.due_at <= RULES.on_time
            else:
                assert next_run_at > row.now
            if next_run_at > now:
                break
    if last is not None:
        assert parse(text, zone, anchor=start).count(start, last) == counted


@pytest.mark.parametrize(
    ("judged_from", "expected"),
    [
        (at("06:00", 6), at("06:00")),  # the newest since then, once
        (at("06:00"), at("06:00", 8)),
        (at("05:59"), at("06:00")),
        (None, at("06:00", 8)),
    ],
)
def test_times_that_code_has_changed_are_judged_from_the_last_run(
    judged_from: datetime | None, expected: datetime
) -> None:
    row = definition(schedule="0 6 * * *", planned_from=at("12:00"), judged_from=judged_from)

    assert (expected, expected) == (plan(row, RULES).next_run_at, plan(row, RULES).planned_for)


def test_what_lies_before_the_start_or_behind_the_end_is_not_judged() -> None:
    judged = {"schedule": "0 6 * * *", "planned_from": at("12:00"), "judged_from": at("00:00", 1)}

    assert at("06:00", 8) == plan(definition(**judged, start_at=at("07:00")), RULES).planned_for
    assert at("06:00", 7) == plan(definition(**judged, start_at=at("06:00")), RULES).planned_for
    assert at("06:00", 5) == plan(definition(**judged, end_at=at("12:00", 5)), RULES).planned_for
    assert plan(definition(**judged, end_at=at("12:00", 5), max_runs=1, run_count=1), RULES).planned_for is None
