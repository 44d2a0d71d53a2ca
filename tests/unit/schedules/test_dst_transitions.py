"""Every kind of leap of a wall clock, at its real date: never lost, never doubled, wildcards follow real time."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from celery_pgbeat.schedules import parse
from tests.unit.schedules.schedule_texts import TICK, UTC

# zone, fixed local time, what it gives on the day of the leap (UTC), and what an hourly wildcard gives around it.
GAPS = [
    ("America/New_York", "30 2", "2026-03-08", ["07:00"]),
    ("America/New_York", "0 2,3", "2026-03-08", ["07:00"]),
    ("America/New_York", "15,30,45 2", "2026-03-08", ["07:00"]),
    ("America/New_York", "59 1", "2026-03-08", ["06:59"]),
    ("Europe/Berlin", "30 2", "2026-03-29", ["01:00"]),
    ("Europe/Berlin", "30 2", "2027-03-28", ["01:00"]),
    ("Europe/Dublin", "30 1", "2026-03-29", ["01:00"]),
    ("Australia/Lord_Howe", "15 2", "2026-10-04", ["15:30"]),
    ("Africa/Casablanca", "30 2", "2026-03-22", ["02:00"]),
    ("America/Sao_Paulo", "0 0", "2018-11-04", ["03:00"]),
    ("Asia/Beirut", "0 0", "2026-03-29", ["22:00"]),
    ("Antarctica/Troll", "30 1", "2026-03-29", ["01:00"]),
    ("Pacific/Chatham", "0 3", "2026-09-27", ["14:00"]),
    ("America/Havana", "30 0", "2026-03-08", ["05:00"]),
    ("Pacific/Apia", "0 12", "2011-12-30", []),  # a day of 24 hours is missing: three hours and more are not caught up
]
OVERLAPS = [
    ("America/New_York", "30 1", "2026-11-01", ["05:30"]),
    ("America/New_York", "0 2", "2026-11-01", ["07:00"]),
    ("Europe/Berlin", "30 2", "2026-10-25", ["00:30"]),
    ("Europe/Berlin", "30 2", "2027-10-31", ["00:30"]),
    ("Europe/Dublin", "30 1", "2026-10-25", ["00:30"]),
    ("Australia/Lord_Howe", "45 1", "2026-04-05", ["14:45"]),
    ("Africa/Casablanca", "30 2", "2026-02-15", ["01:30"]),
    ("America/Sao_Paulo", "30 23", "2018-02-17", ["01:30"]),
    ("Asia/Beirut", "30 23", "2026-10-24", ["20:30"]),
    ("Antarctica/Troll", "30 1", "2026-10-25", ["23:30"]),
    ("Pacific/Chatham", "0 3", "2026-04-05", ["13:15"]),
    ("America/Havana", "30 0", "2026-11-01", ["04:30"]),
    ("America/Havana", "0 0", "2026-11-01", ["04:00"]),
]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local_day(fields: str, zone: str, date: str, dst: str = "default") -> list[str]:
    """Return the times (UTC) of a schedule that belong to that local date."""
    found = parse(fields, zone, dst=dst).occurrences(utc(date) - timedelta(days=2), utc(date) + timedelta(days=3))
    zoned = [(instant, instant.astimezone(ZoneInfo(zone))) for instant in found]
    return [f"{instant:%H:%M}" for instant, reading in zoned if f"{reading:%Y-%m-%d}" == date]


@pytest.mark.parametrize(("zone", "time", "date", "expected"), GAPS)
def test_a_fixed_time_in_a_gap_runs_once_right_after_it(zone, time, date, expected):
    assert expected == local_day(f"{time} * * *", zone, date)
    assert expected == local_day(f"crontab: {time} * * *", zone, date)


@pytest.mark.parametrize(("zone", "time", "date", "expected"), OVERLAPS)
def test_a_fixed_time_in_an_overlap_runs_in_the_first_pass_only(zone, time, date, expected):
    assert expected == local_day(f"{time} * * *", zone, date)
    assert expected == local_day(f"crontab: {time} * * *", zone, date)


LEAPS = sorted({(zone, date) for zone, _, date, _ in GAPS + OVERLAPS})


@pytest.mark.parametrize(("zone", "date"), LEAPS)
@pytest.mark.parametrize("text", ["*/15 * * * *", "crontab: */15 * * * *", "every 15 min"])
def test_a_wildcard_follows_real_time_through_every_leap(zone, date, text):
    if zone in ("Pacific/Chatham", "Australia/Lord_Howe", "Pacific/Apia"):
        date = {"Pacific/Apia": "2011-12-29"}.get(zone, date)
    found = list(parse(text, zone).occurrences(utc(date) - timedelta(days=1), utc(date) + timedelta(days=2)))

    assert {timedelta(minutes=15)} == {later - sooner for sooner, later in pairwise(found)}


@pytest.mark.parametrize(
    ("dst", "gap", "overlap"),
    [
        ("default", ["01:00"], ["00:30"]),
        ("skip", [], ["00:30"]),
        ("once", ["01:00"], ["00:30"]),
        ("all", ["01:00"], ["00:30", "01:30"]),
    ],
)
def test_dst_overrides_what_happens_to_a_fixed_time(dst, gap, overlap):
    assert gap == local_day("30 2 * * *", "Europe/Berlin", "2026-03-29", dst)
    assert overlap == local_day("30 2 * * *", "Europe/Berlin", "2026-10-25", dst)


@pytest.mark.parametrize(("dst", "hours"), [("default", 25), ("skip", 24), ("once", 24), ("all", 25)])
def test_dst_overrides_how_often_an_hourly_wildcard_runs_on_a_day_of_25_hours(dst, hours):
    assert hours == len(local_day("0 * * * *", "Europe/Berlin", "2026-10-25", dst))
    assert len(local_day("0 * * * *", "Europe/Berlin", "2026-03-29", dst)) == 23


@pytest.mark.parametrize(
    ("text", "gap", "overlap"),
    [
        ("calendar: 02:30", [], ["00:30"]),
        ("DTSTART:20260101T023000 RRULE:FREQ=DAILY", ["01:30"], ["00:30"]),
        ("R/2026-01-01T02:30:00/P1D", ["01:30"], ["00:30"]),
        ("R/2026-01-01T02:30:00/PT24H", ["01:30"], ["01:30"]),
    ],
)
def test_the_other_kinds_keep_the_rule_of_their_own_standard(text, gap, overlap):
    assert gap == local_day(text, "Europe/Berlin", "2026-03-29")
    assert overlap == local_day(text, "Europe/Berlin", "2026-10-25")


def test_a_single_date_time_in_a_gap_is_shifted_and_in_an_overlap_it_is_the_first():
    def only(text: str, dst: str = "default") -> datetime | None:
        return parse(text, "Europe/Berlin", dst=dst).next(utc("2026-01-01"))

    assert utc("2026-03-29T01:30") == only("2026-03-29T02:30:00")
    assert only("2026-03-29T02:30:00", "skip") is None
    assert utc("2026-10-25T00:30") == only("2026-10-25T02:30:00")
    assert utc("2026-10-25T01:30") == only("2026-10-25T02:30:00+01:00")


def test_all_fixed_times_in_one_gap_are_one_occurrence():
    schedule = parse("0,10,20,30 2,3 * * *", "Europe/Berlin")
    found = list(schedule.occurrences(utc("2026-03-29") - TICK, utc("2026-03-29T02:00")))

    assert ["01:00", "01:10", "01:20", "01:30"] == [f"{instant:%H:%M}" for instant in found]
    assert schedule.count(utc("2026-03-29"), utc("2026-03-29T02:00")) == 4


def test_seconds_make_no_wildcard():
    schedule = parse("* 30 2 * * *", "Europe/Berlin")
    found = list(schedule.occurrences(utc("2026-03-29"), utc("2026-03-29T12:00")))

    assert [utc("2026-03-29T01:00")] == found


def test_a_daily_job_keeps_its_wall_clock_time():  # D-32
    schedule = parse("0 9 * * *", "Europe/Berlin")

    assert utc("2027-03-27T08:00") == schedule.next(utc("2027-03-27"))
    assert utc("2027-03-28T07:00") == schedule.next(utc("2027-03-28"))


def test_a_change_of_zone_moves_the_next_run():  # D-33
    base = utc("2026-12-08")

    assert utc("2026-12-08T08:00") == parse("0 9 * * *", "Europe/Berlin").next(base)
    assert utc("2026-12-08T14:00") == parse("0 9 * * *", "America/New_York").next(base)
