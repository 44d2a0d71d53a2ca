"""No text of a schedule costs a beat much: to read it, to plan by it, to count what a century has of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import Schedule, parse
from celery_pgbeat.schedules.parse import read
from tests.harness.cost import loops_for
from tests.harness.expensive_texts import POSITIONS, expensive_rules, expensive_texts
from tests.harness.schedule_texts import LEAPS, UTC, dsts, zones

NOW = datetime(2026, 12, 7, tzinfo=UTC)
CENTURY = timedelta(days=36_524)


READ_WITHIN = 24  # loops; two and a half times what the worst text takes
COUNTED_WITHIN = 36
# Without changes of the clocks, with regular ones, with four in most years, and by half an hour.
FEW_ZONES = st.sampled_from(("UTC", "America/New_York", "Africa/Casablanca", "Australia/Lord_Howe"))

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


@lru_cache
def survey(zone: str) -> None:
    """Have a zone surveyed before anything is measured: that is done once in a process."""
    parse("30 2 * * *", zone).count(NOW - 11 * CENTURY, NOW + 4 * CENTURY)


def made(text: str, zone: str, dst: str = "default") -> Schedule | None:
    """Read a text past the cache; None if it is refused."""
    try:
        return read(text, zone, "a row", dst, NOW)
    except InvalidSchedule:
        return None


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_cheap_to_read_to_plan_and_to_count(text: str) -> None:
    survey("America/New_York")
    schedule = made(text, "America/New_York")

    assert loops_for(lambda: made(text, "America/New_York")) < READ_WITHIN
    if schedule is not None:
        assert loops_for(lambda: list(schedule.occurrences(NOW, limit=20))) < READ_WITHIN
        assert loops_for(lambda: schedule.previous(NOW)) < READ_WITHIN
        assert loops_for(lambda: schedule.count(NOW, NOW + CENTURY)) < COUNTED_WITHIN


@settings(max_examples=40, deadline=None, database=None)
@given(expensive_texts, FEW_ZONES, dsts)
def test_no_text_of_any_kind_is_expensive(text: str, zone: str, dst: str) -> None:
    survey(zone)
    schedule = made(text, zone, dst)

    assert loops_for(lambda: made(text, zone, dst), 2) < 2 * READ_WITHIN
    if schedule is not None:
        assert loops_for(lambda: list(schedule.occurrences(NOW, limit=3)), 2) < 2 * READ_WITHIN
        assert loops_for(lambda: schedule.previous(NOW), 2) < 2 * READ_WITHIN
        assert loops_for(lambda: schedule.count(NOW, NOW + CENTURY), 2) < 2 * COUNTED_WITHIN


@settings(max_examples=100, deadline=None, database=None)
@given(expensive_rules, zones, dsts, st.sampled_from(LEAPS), st.integers(-9_000, 9_000), st.integers(1, 9_000))
def test_a_count_around_a_change_of_the_clocks_equals_the_occurrences_there(
    text: str, zone: str, dst: str, leap: datetime, begin: int, length: int
) -> None:
    schedule = made(text, zone, dst)
    first = leap + timedelta(seconds=begin)
    last = first + timedelta(seconds=length)
    if schedule is not None:
        assert len(list(schedule.occurrences(first, last))) == schedule.count(first, last)
