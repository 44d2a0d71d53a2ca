"""No text of a schedule costs a beat much: to read it, to plan by it, to count what a century has of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, parse
from celery_pgbeat.schedules.parse import read
from tests.unit.schedules.schedule_texts import LEAPS, UTC, ZONES, any_text, dsts, field, zones

NOW = datetime(2026, 12, 7, tzinfo=UTC)
CENTURY = timedelta(days=36_524)


def loop() -> None:
    total = 0
    for number in range(100_000):
        total += number % 7


def seconds_for(action: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def loops_for(action: Callable[[], object], tries: int = 3) -> float:
    """Return what an action costs at its cheapest, in loops of 100,000 small steps that run beside it.

    Beside it, not once at the start: a shared machine changes its speed from one minute to the next.
    """
    found = []
    for _ in range(tries):
        before = seconds_for(loop)
        cost = seconds_for(action)
        found.append(cost / max(before, seconds_for(loop)))
    return min(found)


READ_WITHIN = 24  # loops; two and a half times what the worst text takes
COUNTED_WITHIN = 36

POSITIONS = ",".join(str(position) for position in (*range(1, 367), *range(-366, 0)))
EVEN = ",".join(str(number) for number in range(0, 60, 2))
HOSTILE = [
    "RRULE:FREQ=MINUTELY;INTERVAL=999983;COUNT=900000000;BYHOUR=3;BYSECOND=1,2,3",
    "RRULE:FREQ=SECONDLY;INTERVAL=7;COUNT=1000000000;BYSECOND=0,13,59;BYMINUTE=7,11",
    "RRULE:FREQ=SECONDLY;INTERVAL=86399;COUNT=1000000000;BYDAY=MO",
    "RRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=3;BYMINUTE=3;BYSECOND=3;COUNT=900000000",
    "RRULE:FREQ=SECONDLY;INTERVAL=999999937;BYHOUR=3",
    f"RRULE:FREQ=SECONDLY;INTERVAL=61;BYHOUR=2,3,4,5;BYSECOND={EVEN};COUNT=1000000000",
    "DTSTART:19000101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=999983;BYHOUR=3;BYSECOND=1,2,3",
    "DTSTART:10000101T000000\nRRULE:FREQ=MINUTELY;INTERVAL=1439;COUNT=1000000000;BYHOUR=3",
    "RRULE:FREQ=SECONDLY;BYMONTH=3",
    "RRULE:FREQ=SECONDLY;BYDAY=SU",
    "RRULE:FREQ=SECONDLY;BYMINUTE=31,7,15,38,18,5,56,3",
    f"RRULE:FREQ=WEEKLY;BYSETPOS={POSITIONS};BYDAY=SU;BYHOUR=2;BYMINUTE={EVEN};BYSECOND={EVEN}",
    f"RRULE:FREQ=WEEKLY;BYSETPOS={POSITIONS};BYHOUR=1,2,3;BYMINUTE={EVEN};BYSECOND={EVEN};COUNT=1000000000",
    f"RRULE:FREQ=YEARLY;BYSETPOS={POSITIONS};BYDAY=MO,TU,WE,TH,FR,SA,SU;COUNT=1000000000",
    "RRULE:FREQ=WEEKLY;BYSETPOS=2;BYDAY=MO",
    "RRULE:FREQ=DAILY;INTERVAL=999999937",
    "RRULE:FREQ=HOURLY;INTERVAL=23;COUNT=1000000000;BYMONTH=2;BYMONTHDAY=29;BYHOUR=3",
]


def made(text: str, zone: str, dst: str = "default") -> Schedule | None:
    """Read a text past the cache; None if it is refused."""
    try:
        return read(text, zone, "a row", dst, NOW)
    except InvalidSchedule:
        return None


@pytest.fixture(autouse=True, scope="module")
def _known_zones() -> None:
    """Let each zone be surveyed before: that is done once in a process."""
    for zone in ZONES:
        parse("30 2 * * *", zone).count(NOW - 11 * CENTURY, NOW + 4 * CENTURY)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("text", HOSTILE)
def test_what_an_author_can_write_is_cheap_to_read_to_plan_and_to_count(text: str, zone: str) -> None:
    schedule = made(text, zone)

    assert loops_for(lambda: made(text, zone)) < READ_WITHIN
    if schedule is not None:
        assert loops_for(lambda: list(schedule.occurrences(NOW, limit=20))) < READ_WITHIN
        assert loops_for(lambda: schedule.previous(NOW)) < READ_WITHIN
        assert loops_for(lambda: schedule.count(NOW, NOW + CENTURY)) < COUNTED_WITHIN


PRIMES = (1, 7, 59, 61, 1_439, 86_399, 86_413, 999_983, 999_999_937)


def part(name: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just(""), values.map(lambda value: f";{name}={value}"))


def listed(low: int, high: int, most: int) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=1, max_size=most, unique=True)
    return numbers.map(lambda found: ",".join(map(str, found)))


hostile_rules = st.builds(
    lambda start, frequency, *parts: f"{start}RRULE:FREQ={frequency}{''.join(parts)}",
    st.sampled_from(("", "DTSTART:10000101T000000\n", "DTSTART:19000228T235959\n", "DTSTART:20240229T023000\n")),
    st.sampled_from(("SECONDLY", "SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")),
    part("INTERVAL", st.sampled_from(PRIMES).map(str)),
    part("COUNT", st.sampled_from(("1", "5", "100000", "1000000000"))),
    part("BYMONTH", listed(1, 12, 12)),
    part("BYHOUR", listed(0, 23, 24)),
    part("BYMINUTE", listed(0, 59, 60)),
    part("BYSECOND", listed(0, 59, 60)),
    part("BYMONTHDAY", st.one_of(st.sampled_from(("29", "31", "-31")), listed(1, 31, 31))),
    part("BYYEARDAY", st.one_of(st.sampled_from(("366", "-366")), listed(1, 366, 100))),
    part("BYWEEKNO", st.one_of(st.sampled_from(("53", "-53")), listed(1, 53, 53))),
    part("BYDAY", st.sampled_from(("MO", "SU", "MO,TU,WE,TH,FR,SA", "MO,TU,WE,TH,FR,SA,SU"))),
    part("BYSETPOS", st.one_of(st.sampled_from(("366", "-366", POSITIONS)), listed(1, 366, 100))),
).filter(lambda text: len(text) <= 4_000)
hostile_crons = st.tuples(
    field(0, 59), field(0, 59), field(0, 23), st.sampled_from(("*", "29", "31", "L", "LW")), field(1, 12), field(0, 7)
).map(" ".join)
hostile_intervals = st.builds(
    "R{}/{}/{}".format,
    st.sampled_from(("", "1", "1000000000")),
    st.sampled_from(("1000-01-31T00:00:00.000001", "2026-02-28T02:30:00", "9997-12-31T23:59:59")),
    st.sampled_from(("PT0.01S", "PT0.999983S", "P1D", "P1DT0.000001S", "P1M1DT1S", "P100Y", "P999983D")),
)
hostile_calendars = st.builds(
    "calendar: {}{} {}".format,
    st.sampled_from(("", "Mon ", "Sat..Mon ")),
    st.sampled_from(("*-2-29", "*-*~31", "1970..2199/229-*-*", "*-*-31", "*-*-*/7", "*-*-*")),
    st.sampled_from(("*:*:0/0.01", "*:*:0/0.011", "*:*:*", "2:30", "0/7:0/7:0/7")),
)
hostile = st.one_of(any_text, hostile_rules, hostile_rules, hostile_crons, hostile_intervals, hostile_calendars)


@settings(max_examples=400, deadline=None, database=None)
@given(hostile, zones, dsts)
def test_no_text_of_any_kind_is_expensive(text: str, zone: str, dst: str) -> None:
    schedule = made(text, zone, dst)

    assert loops_for(lambda: made(text, zone, dst), 2) < 2 * READ_WITHIN
    if schedule is not None:
        assert loops_for(lambda: list(schedule.occurrences(NOW, limit=3)), 2) < 2 * READ_WITHIN
        assert loops_for(lambda: schedule.previous(NOW), 2) < 2 * READ_WITHIN
        assert loops_for(lambda: schedule.count(NOW, NOW + CENTURY), 2) < 2 * COUNTED_WITHIN


@settings(max_examples=200, deadline=None, database=None)
@given(hostile_rules, zones, dsts, st.sampled_from(LEAPS), st.integers(-9_000, 9_000), st.integers(1, 9_000))
def test_what_is_counted_around_a_leap_is_what_is_found_there(
    text: str, zone: str, dst: str, leap: datetime, begin: int, length: int
) -> None:
    schedule = made(text, zone, dst)
    first = leap + timedelta(seconds=begin)
    last = first + timedelta(seconds=length)
    if schedule is not None:
        assert len(list(schedule.occurrences(first, last))) == schedule.count(first, last)
