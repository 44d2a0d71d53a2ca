"""Every kind of leap of a wall clock, at its real date: never lost, never doubled, wildcards follow real time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import TICK, UTC

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
    ("America/Havana", "30 0", "2025-03-09", ["05:00"]),
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
    ("America/Havana", "30 0", "2025-11-02", ["04:30"]),
    ("America/Havana", "0 0", "2025-11-02", ["04:00"]),
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


@pytest.mark.parametrize(("zone", "date"), LEAPS)  # D-32
@pytest.mark.parametrize("text", ["*/15 * * * *", "crontab: */15 * * * *", "every 15 min"])
def test_a_wildcard_follows_real_time_through_every_leap(zone, date, text):
    if zone in ("Pacific/Chatham", "Australia/Lord_Howe", "Pacific/Apia"):
        date = {"Pacific/Apia": "2011-12-29"}.get(zone, date)
    found = list(parse(text, zone).occurrences(utc(date) - timedelta(days=1), utc(date) + timedelta(days=2)))

    assert {timedelta(minutes=15)} == {later - sooner for sooner, later in pairwise(found)}


APIA = ("Pacific/Apia", "2011-12-30T10:00")  # the clock goes from the end of the 29th to the 31st
# zone, when its clock leaps (UTC), a reading that the leap leaves out, and that reading shifted by the leap (UTC).
LEFT_OUT = [
    ("America/New_York", "2026-03-08T07:00", "2026-03-08T02:30", "2026-03-08T07:30"),
    ("Europe/Berlin", "2026-03-29T01:00", "2026-03-29T02:30", "2026-03-29T01:30"),
    ("Europe/Dublin", "2026-03-29T01:00", "2026-03-29T01:30", "2026-03-29T01:30"),
    ("Australia/Lord_Howe", "2026-10-03T15:30", "2026-10-04T02:15", "2026-10-03T15:45"),
    ("Africa/Casablanca", "2026-03-22T02:00", "2026-03-22T02:30", "2026-03-22T02:30"),
    ("America/Sao_Paulo", "2018-11-04T03:00", "2018-11-04T00:30", "2018-11-04T03:30"),
    ("Asia/Beirut", "2026-03-28T22:00", "2026-03-29T00:30", "2026-03-28T22:30"),
    ("Antarctica/Troll", "2026-03-29T01:00", "2026-03-29T01:30", "2026-03-29T01:30"),
    ("Pacific/Chatham", "2026-09-26T14:00", "2026-09-27T03:00", "2026-09-26T14:15"),
    ("America/Havana", "2025-03-09T05:00", "2025-03-09T00:30", "2025-03-09T05:30"),
]
# zone, when its clock leaps back (UTC), by how many minutes, a reading that is shown twice, its two passes (UTC).
TWICE = [
    ("America/New_York", "2026-11-01T06:00", 60, "2026-11-01T01:30", "2026-11-01T05:30", "2026-11-01T06:30"),
    ("Europe/Berlin", "2026-10-25T01:00", 60, "2026-10-25T02:30", "2026-10-25T00:30", "2026-10-25T01:30"),
    ("Europe/Dublin", "2026-10-25T01:00", 60, "2026-10-25T01:30", "2026-10-25T00:30", "2026-10-25T01:30"),
    ("Australia/Lord_Howe", "2026-04-04T15:00", 30, "2026-04-05T01:45", "2026-04-04T14:45", "2026-04-04T15:15"),
    ("Africa/Casablanca", "2026-02-15T02:00", 60, "2026-02-15T02:30", "2026-02-15T01:30", "2026-02-15T02:30"),
    ("America/Sao_Paulo", "2018-02-18T02:00", 60, "2018-02-17T23:30", "2018-02-18T01:30", "2018-02-18T02:30"),
    ("Asia/Beirut", "2026-10-24T21:00", 60, "2026-10-24T23:30", "2026-10-24T20:30", "2026-10-24T21:30"),
    ("Antarctica/Troll", "2026-10-25T01:00", 120, "2026-10-25T01:30", "2026-10-24T23:30", "2026-10-25T01:30"),
    ("Pacific/Chatham", "2026-04-04T14:00", 60, "2026-04-05T03:00", "2026-04-04T13:15", "2026-04-04T14:15"),
    ("America/Havana", "2025-11-02T05:00", 60, "2025-11-02T00:30", "2025-11-02T04:30", "2025-11-02T05:30"),
]
DAILY = {  # at the time of the day that a reading shows
    "cron": "{0.minute} {0.hour} * * *",
    "crontab": "crontab: {0.minute} {0.hour} * * *",
    "calendar": "{0:%H:%M}",
    "rrule": "DTSTART:20100101T{0:%H%M}00 RRULE:FREQ=DAILY",
    "iso": "R/2010-01-01T{0:%H:%M}:00/P1D",
    "once": "{0:%Y-%m-%dT%H:%M}",
}
QUARTERS = {  # every 15 minutes
    "cron": "*/15 * * * *",
    "crontab": "crontab: */15 * * * *",
    "calendar": "*:0/15",
    "rrule": "DTSTART:20100101T000000 RRULE:FREQ=MINUTELY;INTERVAL=15",
    "iso": "R/2010-01-01T00:00:00Z/PT15M",
    "interval": "every 15m",
}


def around(text: str, zone: str, leap: str, hours: int, dst: str = "default") -> list[datetime]:
    """Return what a schedule gives in so many hours before and after a leap."""
    reach = timedelta(hours=hours)
    return list(parse(text, zone, dst=dst).occurrences(utc(leap) - reach, utc(leap) + reach))


@pytest.mark.parametrize("kind", DAILY)
@pytest.mark.parametrize(("zone", "leap", "reading", "shifted"), LEFT_OUT)
def test_a_reading_that_a_leap_leaves_out_is_treated_by_the_rule_of_its_kind(zone, leap, reading, shifted, kind):
    text = DAILY[kind].format(datetime.fromisoformat(reading))
    expected = {"cron": [utc(leap)], "crontab": [utc(leap)], "calendar": []}.get(kind, [utc(shifted)])

    assert expected == around(text, zone, leap, 12)
    assert [] == around(text, zone, leap, 12, "skip")


@pytest.mark.parametrize("kind", DAILY)
@pytest.mark.parametrize(("zone", "leap", "minutes", "reading", "first", "second"), TWICE)
def test_a_reading_that_is_shown_twice_counts_once_and_if_asked_for_twice(
    zone, leap, minutes, reading, first, second, kind
):
    text = DAILY[kind].format(datetime.fromisoformat(reading))
    both = [utc(first), utc(second)]

    assert both[:1] == around(text, zone, leap, 12)
    assert (both[:1] if kind == "once" else both) == around(text, zone, leap, 12, "all")
    assert utc(second) - utc(first) == timedelta(minutes=minutes)


@pytest.mark.parametrize("kind", QUARTERS)
@pytest.mark.parametrize(("zone", "leap"), [(zone, leap) for zone, leap, *_ in LEFT_OUT] + [APIA])
def test_every_quarter_of_an_hour_real_time_goes_on_through_a_gap(zone, leap, kind):
    quarter = timedelta(minutes=15)

    assert [utc(leap) + number * quarter for number in range(-11, 13)] == around(QUARTERS[kind], zone, leap, 3)


@pytest.mark.parametrize("kind", QUARTERS)
@pytest.mark.parametrize(("zone", "leap", "minutes"), [row[:3] for row in TWICE])
def test_every_quarter_of_an_hour_dates_are_silent_in_the_second_pass_and_the_others_are_not(zone, leap, minutes, kind):
    quarter = timedelta(minutes=15)
    every = [utc(leap) + number * quarter for number in range(-11, 13)]
    once = [instant for instant in every if not utc(leap) <= instant < utc(leap) + timedelta(minutes=minutes)]

    assert (once if kind in ("calendar", "rrule") else every) == around(QUARTERS[kind], zone, leap, 3)
    assert (every if kind in ("iso", "interval") else once) == around(QUARTERS[kind], zone, leap, 3, "once")


@pytest.mark.parametrize("kind", [kind for kind in DAILY if kind != "once"])
def test_a_day_that_a_zone_left_out_gives_nothing_of_its_own(kind):
    zone, leap = APIA  # noon of the 29th, then noon of the 31st, which is also that of the 30th, shifted by 24 hours
    text = DAILY[kind].format(datetime(2011, 12, 30, 12))

    assert [utc("2011-12-29T22:00"), utc("2011-12-30T22:00")] == around(text, zone, leap, 13)


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


@pytest.mark.parametrize(  # D-32
    ("text", "spring", "autumn"),
    [("30 2 * * *", ["2027-03-28T01:00"], ["2027-10-31T00:30"]), ("02:30 Europe/Berlin", [], ["2027-10-31T00:30"])],
)
def test_a_nightly_job_runs_once_in_spring_and_in_autumn_and_an_event_never_in_spring(text, spring, autumn):
    assert [utc(moment) for moment in spring] == around(text, "Europe/Berlin", "2027-03-28T01:00", 12)
    assert [utc(moment) for moment in autumn] == around(text, "Europe/Berlin", "2027-10-31T01:00", 12)


def test_an_event_in_a_gap_is_passed_over_at_once():  # D-32: another library looped there for ever
    def seconds() -> float:
        begun = time.process_time()
        found = parse("Mon *-*-* 02:00:00 Europe/Warsaw").next(utc("2025-03-27T12:00"))
        assert utc("2025-03-31T00:00") == found
        return time.process_time() - begun

    assert min(seconds() for _ in range(5)) < 0.001


def test_a_change_of_zone_moves_the_next_run():  # D-33
    base = utc("2026-12-08")

    assert utc("2026-12-08T08:00") == parse("0 9 * * *", "Europe/Berlin").next(base)
    assert utc("2026-12-08T14:00") == parse("0 9 * * *", "America/New_York").next(base)
