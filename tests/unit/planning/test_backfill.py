"""Which occurrences of a range a backfill submits, step by step."""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.planning import NOTHING, BackfillRange, BackfillStep, History, job_id, range_of
from tests.unit.planning.rows import NEW_YEAR, RULES, at, definition

UTC = timezone.utc
HOUR = timedelta(hours=1)


def hourly(since: datetime, until: datetime, mode: str = "missing", **columns: Any) -> BackfillRange:
    return range_of(definition(**{"schedule": "0 * * * *", **columns}), since, until, mode, RULES)


def step(
    chosen: BackfillRange,
    reached: datetime | None = None,
    history: History = NOTHING,
    room: int = 100,
    left: Any = None,
) -> BackfillStep:
    return chosen.step(reached, history, room, left)


def steps(chosen: BackfillRange, history: History, room: int) -> tuple[list[datetime], int, int]:
    """Make all steps; return what went out, how many were passed over, and how many steps it took."""
    out: list[datetime] = []
    passed, made, reached = 0, 0, None
    while True:
        one = step(chosen, reached, history, room)
        out += one.jobs
        passed, made, reached = passed + one.skipped, made + 1, one.reached
        if one.next_at is None:
            return out, passed, made


def test_both_ends_belong_to_the_range() -> None:
    chosen = hourly(at("10:00"), at("12:00"))

    assert 3 == chosen.count()
    assert BackfillStep((at("10:00"), at("11:00"), at("12:00")), at("12:00"), 0, None) == step(chosen)
    assert (at("11:00"),) == step(hourly(at("10:00:01"), at("11:59"))).jobs
    assert () == step(hourly(at("10:01"), at("10:59"))).jobs


def test_the_row_s_own_bounds_hold() -> None:
    bounded = {"start_at": at("11:00"), "end_at": at("12:00")}

    assert (at("11:00"), at("12:00")) == step(hourly(at("08:00"), at("20:00"), **bounded)).jobs
    for outside in (at("08:00"), at("10:30")), (at("12:01"), at("20:00")):
        nothing = step(hourly(*outside, **bounded))
        assert ((), 0, None) == (nothing.jobs, nothing.skipped, nothing.next_at)


def test_time_before_the_row_was_planned_counts() -> None:
    before = NEW_YEAR - 100 * HOUR

    assert (before, before + HOUR) == step(hourly(before, before + HOUR)).jobs


def test_an_interval_has_no_occurrence_before_its_grid_begins() -> None:
    chosen = hourly(NEW_YEAR - HOUR, NEW_YEAR + HOUR, schedule="every 30m")

    assert (NEW_YEAR, NEW_YEAR + HOUR / 2, NEW_YEAR + HOUR) == step(chosen).jobs


def test_jitter_and_blackout_windows_do_not_apply() -> None:
    plain, spread = hourly(at("10:00"), at("12:00")), {"jitter": HOUR, "blackout": ["cron: 0 0 * * * P1D"]}

    assert step(plain) == step(hourly(at("10:00"), at("12:00"), **spread))


def test_a_night_on_which_the_clocks_change_is_filled_as_it_was_run() -> None:
    nightly = {"schedule": "30 2 * * *", "timezone": "Europe/Berlin"}
    spring = hourly(datetime(2027, 3, 27, tzinfo=UTC), datetime(2027, 3, 29, 23, tzinfo=UTC), **nightly)
    autumn = hourly(datetime(2027, 10, 30, tzinfo=UTC), datetime(2027, 11, 1, tzinfo=UTC), **nightly)

    assert [(27, 1, 30), (28, 1, 0), (29, 0, 30)] == [(one.day, one.hour, one.minute) for one in step(spring).jobs]
    assert [(30, 0, 30), (31, 0, 30)] == [(one.day, one.hour, one.minute) for one in step(autumn).jobs]


def test_no_more_go_out_than_there_is_room_for_and_the_next_step_goes_on() -> None:
    chosen = hourly(at("00:00"), at("09:00"), "all")

    first = step(chosen, room=4)
    second = step(chosen, first.reached, room=4)

    assert [0, 1, 2, 3] == [one.hour for one in first.jobs]
    assert at("04:00") == first.next_at == second.jobs[0]
    assert ([one + timedelta(0) for one in step(chosen, room=10).jobs], 0, 3) == steps(chosen, NOTHING, 4)


@pytest.mark.parametrize("room", [1, 3, 100])
def test_each_mode_sends_its_occurrences_and_counts_the_others(room: int) -> None:
    history = History({at("01:00"): False, at("03:00"): True, at("03:30"): True, at("05:00"): True, at("08:00"): False})
    begin, end = at("00:00"), at("09:00")

    hours = {mode: steps(hourly(begin, end, mode), history, room) for mode in ("missing", "failed", "all")}

    assert [0, 2, 4, 6, 7, 9] == [one.hour for one in hours["missing"][0]]
    assert [3, 5] == [one.hour for one in hours["failed"][0]]
    assert list(range(10)) == [one.hour for one in hours["all"][0]]
    assert {"missing": 4, "failed": 8, "all": 0} == {mode: passed for mode, (_, passed, _) in hours.items()}


def test_nothing_is_decided_beyond_the_end_of_the_history() -> None:
    chosen = hourly(at("00:00"), at("09:00"), "failed")
    known = History({at("01:00"): False, at("03:00"): True}, until=at("03:00"))

    one = step(chosen, history=known)

    assert BackfillStep((at("03:00"),), at("03:00"), 3, at("04:00")) == one
    assert BackfillStep((), at("05:30"), 2, at("06:00")) == step(chosen, one.reached, History({}, until=at("05:30")))


def test_a_history_of_another_schedule_is_left_behind() -> None:
    """Else the same part of the history would be read again and again."""
    old = History({at("00:30") + n * timedelta(minutes=1): False for n in range(20)}, until=at("00:49"))

    for mode in ("missing", "failed"):
        one = step(hourly(at("00:10"), at("09:00"), mode), history=old)
        assert ((), at("00:49"), 0, at("01:00")) == (one.jobs, one.reached, one.skipped, one.next_at)


def test_occurrences_that_a_due_row_has_still_to_decide_wait() -> None:
    chosen = hourly(at("00:00"), at("05:00"))

    one = step(chosen, left=at("03:00"))
    waiting = step(chosen, one.reached, left=at("03:00"))

    assert [0, 1, 2] == [occurrence.hour for occurrence in one.jobs]
    assert ((), 0, at("03:00")) == (waiting.jobs, waiting.skipped, waiting.next_at)
    assert [3, 4, 5] == [occurrence.hour for occurrence in step(chosen, waiting.reached).jobs]


def test_counting_gives_the_same_as_deciding() -> None:
    history = History({at("01:00"): False, at("03:00"): True, at("03:30"): True, at("08:00"): True})
    for mode in ("missing", "failed", "all"):
        chosen = hourly(at("00:00"), at("09:00"), mode)
        out, _, _ = steps(chosen, history, 100)
        assert len(out) == chosen.count_wanted(chosen.begin, history, chosen.end)
        assert 0 == chosen.count_wanted(at("09:00"), history, chosen.end)


def test_fifty_years_of_seconds_without_a_failure_take_one_step() -> None:
    since = NEW_YEAR - timedelta(days=18_262)
    chosen = hourly(since, NEW_YEAR, "failed", schedule="* * * * * *")
    began = time.process_time()

    one = step(chosen)

    assert (None, chosen.count()) == (one.next_at, one.skipped)
    assert one.skipped == 18_262 * 86_400 + 1
    assert time.process_time() - began < 1.0


def test_ids_are_the_same_for_one_backfill_and_other_ones_for_the_next() -> None:
    chosen = hourly(at("00:00"), at("05:00"))
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)

    assert chosen.job_id(first, at("01:00")) == chosen.job_id(first, at("01:00").astimezone(timezone(HOUR)))
    ids = {
        chosen.job_id(first, at("01:00")),
        chosen.job_id(first, at("02:00")),
        chosen.job_id(second, at("01:00")),
        job_id("a", NEW_YEAR, at("01:00")),
    }
    assert 4 == len(ids)
    assert {8} == {one.version for one in ids}


def test_a_row_that_cannot_be_planned_cannot_be_backfilled() -> None:
    with pytest.raises(InvalidSchedule, match="faster than pgbeat_min_interval"):
        hourly(at("00:00"), at("01:00"), schedule="every 100ms")
