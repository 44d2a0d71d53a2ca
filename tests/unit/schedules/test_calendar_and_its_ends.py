"""Leap days, ends of months, weeks that belong to another year, and the years that computers do not like."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.parse import read
from tests.harness.schedule_texts import TICK, UTC

NEVER_BEFORE = datetime(1990, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(text: str, after: str, number: int) -> list[str]:
    return [f"{instant:%Y-%m-%d}" for instant in parse(text).occurrences(utc(after), limit=number)]


LEAP_DAY = {
    "cron": "0 0 29 2 *",
    "crontab": "crontab: 0 0 29 2 *",
    "calendar": "*-02-29",
    "rrule": "DTSTART:19960229T000000 RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    "rrule, from its start": "DTSTART:19960229T000000 RRULE:FREQ=YEARLY",
    "last day of February": "DTSTART:19960229T000000 RRULE:FREQ=YEARLY;BYYEARDAY=60;BYMONTH=2",
}


@pytest.mark.parametrize("text", LEAP_DAY.values(), ids=LEAP_DAY)
def test_a_leap_day_comes_every_four_years_but_not_in_2100(text):
    assert ["2028-02-29", "2032-02-29"] == days(text, "2026-12-07", 2)
    assert ["2096-02-29", "2104-02-29"] == days(text, "2093-01-01", 2)
    assert utc("2096-02-29") == parse(text).previous(utc("2104-02-29"))
    assert 3 == parse(text).count(utc("2095-01-01"), utc("2109-01-01"))


@pytest.mark.parametrize(
    "text",
    [
        "crontab: 0 0 29 2 mon",
        "0 0 */28 2 mon#5",
        "Mon *-02-29",
        "DTSTART:19960229T000000 RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    ],
)
def test_a_leap_day_bound_to_a_weekday_comes_every_28_years_and_40_around_2100(text):
    assert ["2044-02-29", "2072-02-29", "2112-02-29"] == days(text, "2026-12-07", 3)
    assert utc("2072-02-29") == parse(text).previous(utc("2112-02-29"))


def test_crons_own_rule_takes_either_the_leap_day_or_the_weekday():
    assert ["2028-02-07", "2028-02-14", "2028-02-21", "2028-02-28", "2028-02-29"] == days("0 0 29 2 1", "2028-02-01", 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R/2027-08-31/P1M", ["08-31", "09-30", "10-31", "11-30", "12-31", "01-31", "02-29", "03-31"]),
        ("R/2027-08-31/P2M", ["08-31", "10-31", "12-31", "02-29", "04-30", "06-30", "08-31"]),
        ("R/2027-08-31/P6M", ["08-31", "02-29", "08-31", "02-28", "08-31", "02-28"]),
        ("R/2027-08-30/P1M1D", ["08-30", "10-01", "11-01", "12-03", "01-03", "02-04", "03-06"]),
        ("0 0 L * *", ["08-31", "09-30", "10-31", "11-30", "12-31", "01-31", "02-29", "03-31"]),
        ("*-*~1", ["08-31", "09-30", "10-31", "11-30", "12-31", "01-31", "02-29", "03-31"]),
        ("0 0 31 * *", ["08-31", "10-31", "12-31", "01-31", "03-31"]),
        ("*-*-31", ["08-31", "10-31", "12-31", "01-31", "03-31"]),
        ("DTSTART:20270831T000000 RRULE:FREQ=MONTHLY", ["08-31", "10-31", "12-31", "01-31", "03-31"]),
        ("DTSTART:20270831T000000 RRULE:FREQ=MONTHLY;BYMONTHDAY=-1", ["08-31", "09-30", "10-31", "11-30", "12-31"]),
    ],
)
def test_each_kind_treats_the_31st_in_short_months_by_its_own_rule(text, expected):
    assert expected == [day[5:] for day in days(text, "2027-08-29T12:00", len(expected))]


@pytest.mark.parametrize("number", [1, 2, 26, 52, 53])
def test_a_week_is_the_week_of_iso_8601(number):
    schedule = parse(f"DTSTART:19900101T000000 RRULE:FREQ=YEARLY;BYWEEKNO={number}")
    found = {instant.date() for instant in schedule.occurrences(utc("2000-01-01") - TICK, utc("2100-12-31"))}
    every_day = (date(2000, 1, 1) + timedelta(days=day) for day in range(36_890))

    assert {day for day in every_day if day.isocalendar()[1] == number and day <= date(2100, 12, 31)} == found


def test_a_53rd_week_comes_in_long_years_only():
    assert ["2026-12-28", "2032-12-27", "2037-12-28", "2043-12-28"] == days(
        "DTSTART:19900101T000000 RRULE:FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "2026-12-07", 4
    )


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("every 1s", "UTC", "2038-01-19T03:14:07", "2038-01-19T03:14:08"),  # seconds no longer fit into 32 bits
        ("* * * * * *", "UTC", "2038-01-19T03:14:07", "2038-01-19T03:14:08"),
        ("*:*:*", "UTC", "2038-01-19T03:14:07", "2038-01-19T03:14:08"),
        ("R/2020-01-01T00:00:00Z/PT1S", "UTC", "2106-02-07T06:28:15", "2106-02-07T06:28:16"),  # nor unsigned
        ("0 12 * * *", "America/New_York", "2037-07-01", "2037-07-01T16:00"),
        ("0 12 * * *", "America/New_York", "2050-07-01", "2050-07-01T16:00"),  # beyond the tables, by the rule
        ("0 12 * * *", "America/New_York", "2099-12-31", "2099-12-31T17:00"),
        ("12:00", "Europe/Berlin", "2100-02-28T12:00", "2100-03-01T11:00"),
        ("0 0 * * *", "UTC", "2100-02-28", "2100-03-01"),
        ("P1D", "UTC", "2100-02-28", "2100-03-01"),
    ],
)
def test_2038_2100_and_2106_are_years_like_others(text, zone, after, expected):
    schedule = parse(text, zone)

    assert utc(expected) == schedule.next(utc(after))
    assert utc(expected) == schedule.previous(utc(expected) + TICK)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0 0 0 1 1 * 9999", "year 9999 is not in 1970-2199"),
        ("9999-12-31 00:00:00 UTC", "year 9999 is not in 1970-2199"),
        ("9999-12-31", "year 9999 is not in 1000-9997"),
        ("R/9999-12-31/P1D", "year 9999 is not in 1000-9997"),
        ("DTSTART:99991231T000000 RRULE:FREQ=DAILY", "DTSTART '99991231T000000' is not a date"),
        ("RRULE:FREQ=DAILY;UNTIL=99991231T235959Z", "UNTIL '99991231T235959Z' is not a date"),
    ],
)
def test_the_year_9999_is_refused_where_it_is_written(text, reason):
    with pytest.raises(InvalidSchedule, match=reason):
        parse(text)


FAR = [
    "9997-12-31",
    "R/9997-01-01/P1D",
    "R3/9997-12-31T23:59:59Z/PT1S",
    "R/9990-01-31/P1M",
    *(
        f"DTSTART:{year}0101T000000 RRULE:FREQ={rule}"
        for year in (9800, 9900, 9997)
        for rule in (
            "DAILY;COUNT=1000000",
            "WEEKLY;BYDAY=MO,TU;BYSETPOS=-1;COUNT=1000000",
            "YEARLY;BYSETPOS=1;BYMONTH=1,2;COUNT=1000",
            "YEARLY;BYWEEKNO=1,53,-1",
            "HOURLY;INTERVAL=7;BYDAY=MO;COUNT=1000000",
            "SECONDLY;COUNT=1000000000",
            "DAILY;UNTIL=99971231T235959Z",
        )
    ),
]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati"])
@pytest.mark.parametrize("text", FAR)
def test_an_occurrence_past_the_end_of_the_calendar_is_never_and_no_error(text, zone):
    schedule = parse(text, zone)

    assert schedule.next(utc("2026-12-07")) is None
    assert schedule.previous(utc("2026-12-07")) is None
    assert 0 == schedule.count(utc("2026-12-07"), utc("2126-01-01"))
    for edge in ("9997-06-01", "9998-12-31T23:59:59.999999", "9999-01-01", "9999-12-31T23:59:59.999999"):
        found = schedule.next(utc(edge))
        assert found is None or found > utc(edge)
        before = schedule.previous(utc(edge))
        assert before is None or before < utc(edge)


@pytest.mark.parametrize("anchor", ["0002-01-01", "9998-12-31T23:59:59.999999"])
@pytest.mark.parametrize("text", ["P1DT1H", "R1/PT26280H", "R/P1MT24H", "RRULE:FREQ=MONTHLY;BYWEEKNO=-1,-31"])
def test_an_anchor_at_an_end_of_the_calendar_is_no_error(text, anchor):
    schedule = parse(text, "America/New_York", anchor=utc(anchor))

    for edge in (anchor, "0101-01-01", "2026-12-07", "9998-01-01"):
        assert schedule.next(utc(edge)) is None or schedule.next(utc(edge)) > utc(edge)
        assert schedule.count(utc(edge), utc(edge) + TICK) in (0, 1)


@pytest.mark.parametrize("zone", ["UTC", "Etc/GMT+5", "Europe/Berlin"])
@pytest.mark.parametrize("text", ["DTSTART:22000101T000000 RRULE:FREQ=DAILY", "RDATE:22000101T000000", "2200-01-01"])
def test_what_is_more_than_a_hundred_years_away_is_never_in_every_zone(text, zone):
    schedule = parse(text, zone)

    assert schedule.next(utc("2099-01-01")) is None
    assert schedule.next(utc("2101-01-01")) is not None


@pytest.mark.parametrize(
    ("rule", "last"),
    [
        ("DTSTART:19000101T000000 RRULE:FREQ=DAILY;COUNT=40000", "2009-07-07"),
        ("DTSTART:18000101T000000 RRULE:FREQ=YEARLY;COUNT=200", "1999-01-01"),
        ("DTSTART:19000101T000000 RRULE:FREQ=YEARLY;INTERVAL=50;COUNT=3", "2000-01-01"),
        ("DTSTART:19000101T000000 RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1;COUNT=1301", "2008-05-05"),
    ],
)
def test_a_count_that_lasts_longer_than_a_hundred_years_still_ends(rule, last):
    schedule = parse(rule)

    assert schedule.next(utc("2026-12-07")) is None
    assert utc(last) == schedule.previous(utc("2026-12-07"))


def test_one_second_steps_since_2020_are_answered_within_a_millisecond():
    def seconds() -> float:
        begun = time.process_time()
        found = read("R/2020-01-01T00:00:00Z/PT1S").next(utc("2026-12-07T10:07:00.500000"))
        assert utc("2026-12-07T10:07:01") == found
        return time.process_time() - begun

    assert min(seconds() for _ in range(5)) < 0.001


def test_a_repetition_without_an_end_keeps_its_grid_for_thousands_of_years():
    schedule = parse("R/1000-01-01/PT1H")

    assert utc("9000-01-01T01:00") == schedule.next(utc("9000-01-01"))
    assert 8000 * 365.2425 * 24 == schedule.count(utc("1000-01-01"), utc("9000-01-01"))
