"""The dialect of cron: what each form means, told by the days and times it picks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.cron.fields import DAY, HOUR, MINUTE
from celery_pgbeat.schedules.cron.hashed import expand
from tests.harness.schedule_texts import UTC

MONDAY = datetime(2026, 12, 7, tzinfo=UTC)
ALL_WEEK = [7, 8, 9, 10, 11, 12, 13]


def days(text: str, month: int = 12, year: int = 2026) -> list[int]:
    """Return the days of a month on which a schedule occurs."""
    first = datetime(year, month, 1, tzinfo=UTC)
    last = (first + timedelta(days=31)).replace(day=1)
    found = parse(text).occurrences(first - timedelta(microseconds=1), last - timedelta(microseconds=1))
    return sorted({instant.day for instant in found})


def minutes(text: str) -> list[int]:
    hour = MONDAY + timedelta(hours=1)
    return [found.minute for found in parse(text).occurrences(MONDAY - timedelta(microseconds=1), hour) if found < hour]


def weekdays(field: str) -> list[int]:
    """Return the days from Monday the 7th to Sunday the 13th that a weekday field picks."""
    return [day for day in days(f"0 0 * * {field}") if day in ALL_WEEK]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("*/15", [0, 15, 30, 45]),
        ("5/20", [5, 25, 45]),
        ("10-30/10", [10, 20, 30]),
        ("55-5", [0, 1, 2, 3, 4, 5, 55, 56, 57, 58, 59]),
        ("50-10/10", [0, 10, 50]),
        ("6-6", [6]),
        ("4-4/3", [4]),
        ("*/100", [0]),
        ("7,3,7", [3, 7]),
        ("007", [7]),
    ],
)
def test_a_minute_field_picks(field, expected):
    assert expected == minutes(f"{field} * * * *")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("mon-fri", [7, 8, 9, 10, 11]),
        ("FRI-MON", [7, 11, 12, 13]),
        ("5-7", [11, 12, 13]),
        ("7-2", [7, 8, 13]),
        ("0-7", ALL_WEEK),
        ("7", [13]),
        ("7/1", [13]),
        ("6/1", [12]),
        ("sat/1", [12]),
        ("*/2", [8, 10, 12, 13]),
        ("mon#2", []),
        ("1#1,5", [7, 11]),
        ("1#1", [7]),
    ],
)
def test_a_weekday_field_picks(field, expected):
    assert expected == weekdays(field)


@pytest.mark.parametrize(
    ("field", "month", "year", "expected"),
    [
        ("L", 2, 2027, [28]),
        ("L", 2, 2028, [29]),
        ("L-3", 12, 2026, [28]),
        ("L-30", 12, 2026, [1]),
        ("L-30", 11, 2026, []),
        ("1,L", 11, 2026, [1, 30]),
        ("LW", 1, 2027, [29]),
        ("LW", 12, 2026, [31]),
        ("15W", 8, 2026, [14]),
        ("15W", 11, 2026, [16]),
        ("1W", 8, 2026, [3]),
        ("31W", 1, 2027, [29]),
        ("31W", 11, 2026, []),
        ("28-3", 11, 2026, [1, 2, 3, 28, 29, 30]),
    ],
)
def test_a_day_field_picks(field, month, year, expected):
    assert expected == days(f"0 0 {field} * *", month, year)


@pytest.mark.parametrize(
    ("weekday", "expected"),
    [("5L", [25]), ("L5", [25]), ("5#L", [25]), ("friL", [25]), ("mon#2", [14]), ("tue#5", [29]), ("mon#5", [])],
)
def test_a_weekday_of_the_month_picks(weekday, expected):
    assert expected == days(f"0 0 * * {weekday}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 1 * 1", [1, 7, 14, 21, 28]),  # both restricted: either
        ("0 0 */10 * 1", [21]),  # one starts with a star: both
        ("0 0 20-31 * */2", [20, 22, 24, 26, 27, 29, 31]),
        ("0 0 4 * 1#2", [4, 14]),
        ("0 0 ? * 1", [7, 14, 21, 28]),
        ("crontab: 0 0 1-7 * 1", [7]),  # Celery: both, always
    ],
)
def test_the_two_day_fields_together_pick(text, expected):
    assert expected == days(text)


def test_six_fields_begin_with_seconds_and_seven_end_with_years():
    assert MONDAY + timedelta(seconds=30) == parse("30 * * * * *").next(MONDAY)
    assert datetime(2030, 1, 1, 0, 0, 15, tzinfo=UTC) == parse("15 0 0 1 1 * 2030-2032").next(MONDAY)
    assert parse("15 0 0 1 1 * 2020").next(MONDAY) is None


@pytest.mark.parametrize(
    ("nickname", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@MIDNIGHT", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_a_nickname_stands_for_fields(nickname, fields):
    assert parse(fields) == parse(nickname)


@pytest.mark.parametrize("prefix", ["CRON_TZ=", "TZ=", "cron: CRON_TZ="])
def test_a_zone_in_the_text_wins(prefix):
    schedule = parse(f"{prefix}Asia/Tokyo 0 9 * * *", "Europe/Berlin")

    assert schedule.timezone == "Asia/Tokyo"
    assert schedule.text == "CRON_TZ=Asia/Tokyo 0 9 * * *"
    assert MONDAY.replace(day=8) == schedule.next(MONDAY)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  0  9 *\t* MON-FRI ", "0 9 * * 1-5"),
        ("cron: 0 09 ? jan,DEC 7", "0 9 * 1,12 7"),
        ("0 0 * * L5", "0 0 * * 5L"),
        ("0 0 l-0 * *", "0 0 L * *"),
        ("CronTab: 0 0 * * *", "crontab: 0 0 * * *"),
    ],
)
def test_the_canonical_text_is(text, canonical):
    assert canonical == parse(text).text


def test_quartz_with_names_means_what_it_means_to_quartz():
    assert parse("0 0 12 * * 1-5") == parse("0 0 12 ? * MON-FRI")
    assert [14] == days("0 0 12 ? * MON#2")


def test_a_hash_is_stable_for_ever():
    schedules = [parse("H H * * *", name=name).text for name in ("report", "mail", "")]

    assert ["50 8 * * *", "42 20 * * *", "23 21 * * *"] == schedules


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        (MINUTE, "H", "50"),
        (MINUTE, "H/15", "5-59/15"),
        (MINUTE, "H(0-9)", "0"),
        (MINUTE, "H(10-19),30", "10,30"),
        (MINUTE, "H/60", "50"),
        (MINUTE, "H/100", "50"),
        (HOUR, "H(0-7)/4", "0-7/4"),
        (DAY, "H", "15"),
        (MINUTE, "5", "5"),
    ],
)
def test_a_hash_stands_for(field, text, expected):
    assert expected == expand(field, text, "report")


def test_hashes_spread_over_the_hour():
    taken = {parse("H * * * *", name=f"row {number}").text for number in range(600)}

    assert len(taken) > 55
