"""What planning remembers of schedules, beside planning that remembers nothing: not one answer may differ."""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celery_pgbeat import planning
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.planning import Due, PlanningRow, Rules, Unplanned, cached_schedule, due_times, job_id
from celery_pgbeat.planning.cached_schedule import CachedSchedule, cached_schedule_of
from celery_pgbeat.schedules import parse, shortest_gap
from celery_pgbeat.schedules.parse import read
from tests.unit.planning.rows import NEW_YEAR, RULES, at, definition, due


class Counted:
    """A schedule that counts how often it is asked."""

    def __init__(self, text: str) -> None:
        self._schedule = parse(text, "UTC", name="a", anchor=NEW_YEAR)
        self.asked = 0

    def next(self, after: datetime) -> datetime | None:
        self.asked += 1
        return self._schedule.next(after)


def test_what_follows_is_calculated_once_for_all_rows_and_not_beyond_the_first_that_is_too_late() -> None:
    counted: Any = Counted("0 */6 * * *")
    line = CachedSchedule(counted)
    noon = at("12:00")

    assert (at("18:00"), at("00:00", 8), at("06:00", 8)) == line.following(noon, at("06:00", 8), 16)
    assert 4 == counted.asked
    assert (at("18:00"), at("00:00", 8)) == line.following(noon, at("05:00", 8), 16)
    assert (at("18:00"), at("00:00", 8), at("06:00", 8)) == line.following(noon, at("11:59", 8), 16)
    assert 4 == counted.asked
    assert (at("18:00"),) == line.following(noon, at("18:00", 8), 1)
    assert (at("18:00"), at("00:00", 8)) == line.following(noon, at("18:00", 8), 2)
    assert () == line.following(at("18:00"), at("18:01"), 16)


def test_the_last_occurrences_are_followed_by_none() -> None:
    once = CachedSchedule(parse("2026-12-07T12:00:00", "UTC", name="a"))

    assert (
        (at("12:00"),)
        == once.following(at("11:00"), at("12:00", 8), 16)
        == once.following(at("11:00"), at("12:00", 9), 16)
    )


TEXTS = (
    "every 10s",
    "every 7m",
    "@every 1h30m",
    "every 365d",
    "every 36000d",
    "every P1DT1H",
    "PT5M",
    "P1M",
    "R/PT1H",
    "R3/PT1H",
    "R/2026-03-28T02:30:00/P1D",
    "@hourly",
    "*/5 * * * *",
    "0 9 * * 1-5",
    "30 2 * * *",
    "H H * * *",
    "every 0.1s",
    "RRULE:FREQ=HOURLY;INTERVAL=5",
    "RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29",
    "Sun 02:30",
    "2026-10-25T02:30:00",
    "0 25 * * *",
    "P0D",
    None,
)
REFUSED = (None, "0 25 * * *", "P0D", "RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29")
BERLIN = ZoneInfo("Europe/Berlin")
CHANGES = datetime(2026, 10, 25, 0, 20, tzinfo=timezone.utc)  # Berlin's clocks go back at 01:00


class Forgetful(CachedSchedule):
    """A recurrence that asks its schedule each time."""

    def next(self, after: datetime) -> datetime | None:
        return self.schedule.next(after)


def compiled_anew(row: PlanningRow, rules: Rules) -> CachedSchedule | None:
    """Return the recurrence of a row, past every cache."""
    if row.schedule is None:
        return None
    anchor = row.anchor.astimezone(timezone.utc)
    schedule = read(row.schedule, row.timezone or rules.timezone, row.name, row.dst, anchor)
    gap = shortest_gap(schedule)
    if gap is not None and gap < rules.min_interval:
        raise InvalidSchedule(row.schedule, "interval", f"{gap} is faster than {rules.min_interval}")
    return Forgetful(schedule)


def id_by_the_library(name: str, created_at: datetime, scheduled_for: datetime) -> uuid.UUID:
    since = [(moment - datetime(2000, 1, 1, tzinfo=timezone.utc)) for moment in (created_at, scheduled_for)]
    lengths = [(length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds for length in since]
    digits = hashlib.sha256(name.encode() + struct.pack("!qq", *lengths)).digest()[:16]
    number = int.from_bytes(digits, "big") & ~(0xF << 76) & ~(0xF << 60) | 8 << 76 | 8 << 60
    return uuid.UUID(int=number)


def answer(ask: Callable[[Any, Rules], object], row: PlanningRow, rules: Rules) -> object:
    """Return the answer about a row, or what part of it is refused."""
    try:
        return ask(row, rules)
    except InvalidSchedule as error:
        return error.text, error.field


def plan_again(row: Due, rules: Rules) -> object:
    """Plan a row as if it had just been changed."""
    return planning.plan(Unplanned(*(getattr(row, column.name) for column in fields(PlanningRow))), rules)


def answers(rows: list[tuple[Due, Rules]]) -> list[object]:
    return [answer(ask, row, rules) for row, rules in rows for ask in (planning.decide, plan_again)]


@st.composite
def rows(draw: st.DrawFn) -> tuple[Due, Rules]:
    """Draw a row that shares much with others, and rules that may have changed since the last one."""
    nominal = CHANGES + draw(st.sampled_from([timedelta(0), timedelta(hours=1), timedelta(days=-200)]))
    some_time = st.sampled_from([None, nominal, nominal + timedelta(minutes=45), nominal - timedelta(days=3)])
    late = draw(st.sampled_from([timedelta(seconds=1), timedelta(minutes=20), timedelta(hours=30)]))
    row = due(
        nominal + late,
        nominal,
        planned_for=draw(st.sampled_from([nominal, None])),
        name=draw(st.sampled_from(["a", "b"])),
        schedule=draw(st.sampled_from(TEXTS)),
        timezone=draw(st.sampled_from([None, "Europe/Berlin"])),
        dst=draw(st.sampled_from(["default", "all"])),
        anchor=draw(st.sampled_from([NEW_YEAR, CHANGES, CHANGES.astimezone(BERLIN)]))
        + draw(st.sampled_from([timedelta(0), timedelta(microseconds=1), timedelta(hours=1)])),
        start_at=draw(some_time),
        end_at=draw(some_time),
        jitter=draw(st.sampled_from([None, timedelta(minutes=3)])),
        blackout=draw(st.sampled_from([None, ("0 1 * * * PT30M",)])),
        blackout_action=draw(st.sampled_from(["defer", "skip"])),
        catchup=draw(st.sampled_from(["none", "latest", "earliest", "all"])),
    )
    rules = Rules(
        timezone=draw(st.sampled_from(["UTC", "America/New_York"])),
        on_time=timedelta(seconds=32),
        lease=timedelta(seconds=15),
        pickup_deadline=draw(st.sampled_from([None, timedelta(hours=3)])),
        min_interval=draw(st.sampled_from([timedelta(0), timedelta(seconds=1), timedelta(hours=1)])),
    )
    return row, rules


@given(burst=st.lists(rows(), min_size=1, max_size=12))
def test_cached_schedules_give_the_same_results_as_new_ones(burst: list[tuple[Due, Rules]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(due_times, "cached_schedule_of", compiled_anew)
        patched.setattr(import_module("celery_pgbeat.planning.decide"), "job_id", id_by_the_library)
        expected = answers(burst)

    assert expected == answers(burst)
    assert expected == answers(burst)


@given(
    text=st.sampled_from([text for text in TEXTS if text not in REFUSED]),
    zone=st.sampled_from(["UTC", "Europe/Berlin"]),
    anchor=st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)),
    away=st.timedeltas(timedelta(days=-400), timedelta(days=4000)),
)
def test_an_interval_moved_to_its_anchor_is_the_one_that_is_read_with_it(
    text: str, zone: str, anchor: datetime, away: timedelta
) -> None:
    start = anchor.replace(tzinfo=timezone.utc)
    expected, found = read(text, zone, "a", "default", start), parse(text, zone, name="a", anchor=start)

    assert expected == found
    assert expected.next(start + away) == found.next(start + away)
    assert expected.previous(start + away) == found.previous(start + away)
    assert expected.count(start, start + away) == found.count(start, start + away)


def test_a_text_that_only_its_anchor_makes_possible_is_not_refused_for_another_anchor() -> None:
    """Counted from 1970 every fourth year has no 29 February, from 2024 each has one."""
    leap = "RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29"
    planned = planning.plan(definition(schedule=leap, anchor=datetime(2024, 1, 1, tzinfo=timezone.utc)), RULES)

    assert datetime(2028, 2, 29, tzinfo=timezone.utc) == planned.next_run_at


def test_a_repeating_interval_keeps_its_number_of_runs_and_is_not_moved() -> None:
    assert parse("R3/PT1H").with_anchor(NEW_YEAR) is None
    assert parse("P1M").with_anchor(NEW_YEAR) is None
    assert parse("every 1h", anchor=NEW_YEAR) == parse("every 1h").with_anchor(NEW_YEAR)


@pytest.mark.parametrize("text", ["every 0.1s", "0 25 * * *", "every P0D"])
def test_a_refused_text_is_refused_each_time(text: str) -> None:
    refusals = []
    for _ in range(3):
        with pytest.raises(InvalidSchedule) as caught:
            planning.decide(due(at("12:00"), at("12:00"), schedule=text), RULES)
        refusals.append(str(caught.value))

    assert 1 == len(set(refusals))


def test_changed_rules_are_not_answered_from_the_cache() -> None:
    row = definition(schedule="0 9 * * *", planned_from=at("00:00"))
    elsewhere = replace(RULES, timezone="America/New_York", pickup_deadline=timedelta(hours=5))
    before, after = planning.plan(row, RULES), planning.plan(row, elsewhere)

    assert (at("09:00"), timedelta(days=1)) == (before.next_run_at, before.pickup_deadline)
    assert (at("14:00"), timedelta(hours=5)) == (after.next_run_at, after.pickup_deadline)
    assert before == planning.plan(row, RULES)


def test_a_changed_minimum_applies_to_cached_schedules() -> None:
    row = definition(schedule="every 5s")
    slower = replace(RULES, min_interval=timedelta(seconds=10))
    planning.plan(row, RULES)

    with pytest.raises(InvalidSchedule, match="faster than pgbeat_min_interval, 10 s"):
        planning.plan(row, slower)
    assert planning.plan(row, RULES).next_run_at is not None


def test_rows_share_a_cached_schedule_if_the_text_does_not_depend_on_their_differences() -> None:
    rows = [definition(name=name, anchor=NEW_YEAR + timedelta(days=day)) for name, day in (("a", 0), ("b", 1))]
    hashed = [replace(row, schedule="H * * * *", anchor=NEW_YEAR) for row in rows]
    anchored = [replace(row, schedule="every 5m", name="a") for row in rows]

    assert cached_schedule_of(rows[0], RULES) is cached_schedule_of(rows[1], RULES)
    for different in (hashed, anchored):
        assert cached_schedule_of(different[0], RULES) is cached_schedule_of(different[0], RULES)
        assert cached_schedule_of(different[0], RULES) is not cached_schedule_of(different[1], RULES)


def test_the_two_passes_of_an_overlap_are_two_arguments_and_two_anchors() -> None:
    passes = [datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)]
    expected = [at.astimezone(timezone.utc) + timedelta(minutes=1) for at in passes]
    minutely = cached_schedule_of(definition(schedule="* * * * *"), RULES)
    rows = [definition(schedule="every 1m", anchor=one, planned_from=one.astimezone(timezone.utc)) for one in passes]

    assert minutely is not None
    assert expected == [minutely.next(one) for one in passes]
    assert expected == [planning.plan(row, RULES).next_run_at for row in rows]


@pytest.mark.parametrize("text", ["every 1m", "* * * * *"])
def test_a_naive_anchor_or_question_is_an_error_even_where_the_text_has_been_seen(text: str) -> None:
    line = planning.due_times_of(definition(schedule=text), RULES)
    line.next_ignoring_bounds(NEW_YEAR)

    with pytest.raises(ValueError, match="no time zone"):
        planning.due_times_of(definition(schedule=text, anchor=NEW_YEAR.replace(tzinfo=None)), RULES)
    with pytest.raises(ValueError, match="no time zone"):
        line.next_ignoring_bounds(NEW_YEAR.replace(tzinfo=None))


def test_the_caches_are_bounded() -> None:
    minutely = cached_schedule_of(definition(schedule="* * * * *"), RULES)
    assert minutely is not None
    for minute in range(100):
        minutely.next(NEW_YEAR + timedelta(minutes=minute))

    assert 2 == len(minutely._answers)
    assert cached_schedule.KEPT == cached_schedule._remembered.cache_info().maxsize


@given(
    name=st.text(st.characters(exclude_categories=["Cs"])),
    moments=st.tuples(
        *[st.datetimes(timezones=st.sampled_from([timezone.utc, BERLIN]), min_value=datetime(1950, 1, 1))] * 2
    ),
)
def test_the_id_of_a_tick_is_a_hash_in_a_uuid_of_version_8(name: str, moments: tuple[datetime, datetime]) -> None:
    assert id_by_the_library(name, *moments) == job_id(name, *moments)
    assert (uuid.RFC_4122, 8) == (job_id(name, *moments).variant, job_id(name, *moments).version)


def test_a_schedule_that_begins_in_another_century_is_no_faster_than_the_minimum_either() -> None:
    later = datetime(2300, 3, 1, tzinfo=timezone.utc)

    for text in ("every 100ms", "R/2300-03-01T00:00:00Z/PT0.1S", "DTSTART:23000301T000000Z\nRRULE:FREQ=SECONDLY"):
        with pytest.raises(InvalidSchedule, match="is faster than pgbeat_min_interval, 60 s"):
            cached_schedule_of(
                definition(schedule=text, anchor=later), replace(RULES, min_interval=timedelta(minutes=1))
            )
