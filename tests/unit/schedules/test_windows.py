"""Blackout windows: half open, and tested again until free."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

import pytest

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse, parse_windows
from celery_pgbeat.schedules.windows import names_in
from tests.harness.schedule_texts import TICK, UTC

NIGHT = "cron: 0 0 * * * PT5H"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_weekend_defers_to_monday():  # B-1
    weekend = parse_windows("cron: 0 0 * * sat PT48H", "UTC")

    assert utc("2026-12-07") == weekend.defer(utc("2026-12-05T10:00"))


def test_a_run_at_night_waits_for_the_morning():  # B-3
    night = parse_windows(NIGHT, "UTC")
    nightly, often = parse("30 2 * * *"), parse("*/10 * * * *")
    first = nightly.next(utc("2026-12-07"))
    assert first is not None
    deferred = [night.defer(instant) for instant in often.occurrences(utc("2026-12-06T23:45"), utc("2026-12-07T05:10"))]

    assert utc("2026-12-07T05:00") == night.defer(first)
    assert [utc("2026-12-06T23:50"), *[utc("2026-12-07T05:00")] * 31, utc("2026-12-07T05:10")] == deferred


def test_a_window_is_half_open():  # B-4
    night = parse_windows(NIGHT, "UTC")

    assert night.covers(utc("2026-12-07T00:00"))
    assert night.covers(utc("2026-12-07T05:00") - TICK)
    assert not night.covers(utc("2026-12-07T05:00"))
    assert not night.covers(utc("2026-12-07T00:00") - TICK)
    assert utc("2026-12-07T05:00") == night.defer(utc("2026-12-07T05:00"))


def test_where_one_window_ends_in_another_the_time_is_tested_again():
    windows = parse_windows(f"cron: 0 0 * * sat P2D; {NIGHT}", "UTC")

    assert utc("2026-12-07T05:00") == windows.defer(utc("2026-12-05T10:00"))


def test_days_of_a_window_are_counted_by_the_wall_and_hours_by_the_stopwatch():
    saturday = utc("2026-03-28T12:00")

    assert utc("2026-03-29T22:00") == parse_windows("0 0 * * sat P2D", "Europe/Berlin").defer(saturday)
    assert utc("2026-03-29T23:00") == parse_windows("0 0 * * sat PT48H", "Europe/Berlin").defer(saturday)


@pytest.mark.parametrize(
    "text",
    [
        "Sat *-*-* 00:00 P2D",
        "calendar: Sat 00:00 P2D",
        "2026-12-05 P2D",
        "CRON_TZ=UTC 0 0 * * sat P2D",
        "R/2026-11-07/P7D P2D",
        "RRULE:FREQ=WEEKLY;BYDAY=SA;BYHOUR=0;BYMINUTE=0;BYSECOND=0 P2D",
        "crontab: 0 0 * * 6 P2D",
    ],
)
def test_any_schedule_may_open_a_window(text):
    windows = parse_windows(text, "UTC")

    assert utc("2026-12-07") == windows.defer(utc("2026-12-06T03:00"))
    assert windows == parse_windows(windows.text, "UTC")


def test_windows_come_as_a_list_too_and_named_ones_are_looked_up():
    weekend = parse_windows("0 0 * * sat P2D", "UTC")
    windows = parse_windows(["window: weekend", f"{NIGHT}; window:weekend"], "UTC", named={"weekend": weekend})

    assert "cron: 0 0 * * 6 P2D; cron: 0 0 * * * PT5H" == windows.text
    assert not parse_windows([], "UTC").covers(utc("2026-12-05"))


def test_names_in_returns_the_names_of_windows_that_are_not_defined():
    texts = [f"window: weekend;Window :night\n; {NIGHT}", "window: Müller", "window:", "0 0 * * *", "RRULE:X;window: a"]

    assert {"weekend", "night", "Müller"} == names_in(texts)


@pytest.mark.parametrize(
    "text", ["* * * * * PT1M", "0 0 * * * P1D", "0 0 * * * PT12H; 0 12 * * * PT12H", "every 1s PT2S"]
)
def test_windows_that_never_leave_a_free_moment_are_refused(text):
    with pytest.raises(InvalidSchedule, match="more than 1,000 windows follow each other without a free moment"):
        parse_windows(text, "UTC")


@pytest.mark.parametrize("text", ["0 0 1 1 * P1Y", "* * * * * P10Y", "0 0 1 1 * P100Y", "every 1d PT876000H"])
def test_a_few_long_windows_that_leave_no_free_moment_for_a_hundred_years_are_refused_too(text):
    with pytest.raises(InvalidSchedule, match="there is no free moment for 100 years"):
        parse_windows(text, "UTC")


def test_a_long_window_that_ends_is_waited_out():
    assert utc("2126-12-05") == parse_windows("2026-12-05 P100Y", "UTC").defer(utc("2026-12-05"))
    assert utc("2027-06-01") == parse_windows("2020-06-01 P7Y; 0 0 1 1 * PT1H", "UTC").defer(utc("2026-12-05"))


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "'' is not a schedule and a duration, such as cron: 0 0 * * * PT5H", 0),
        ("0 0 * * *", "'0 0 * * *' is not a schedule and a duration, such as cron: 0 0 * * * PT5H", 0),
        ("0 25 * * * PT5H", "hour 25 is not in 0-23", 2),
        (f"{NIGHT};  0 25 * * * PT5H", "hour 25 is not in 0-23", 25),
        ("0 0 * * * PT0S", "an interval must be longer than 0", 10),
        ("window: weekend", "there is no blackout window named 'weekend'", 8),
    ],
)
def test_a_wrong_window_is_refused_with_its_place(text, reason, position):
    with pytest.raises(InvalidSchedule) as refused:
        parse_windows(text, "UTC")

    assert (reason, position) == (refused.value.reason, refused.value.position)


def test_too_many_windows_are_refused():
    with pytest.raises(InvalidSchedule, match="there are 21 windows, more than 20"):
        parse_windows("; ".join(f"{hour} 3 * * * PT1M" for hour in range(21)), "UTC")


@pytest.mark.parametrize("text", ["every 1d PT1S", "R/1990-01-01/P99Y P98Y", "R/1990-01-01/P99Y PT800000H"])
def test_the_ends_of_the_calendar_are_no_error(text):
    windows = parse_windows(text, "Europe/Berlin")

    for edge in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), utc("9998-12-31T23:59:59")):
        windows.covers(edge)
        windows.defer(edge)


def test_a_blacked_out_time_begins_when_its_first_window_opens():
    windows = parse_windows("cron: 0 0 * * sat P2D; cron: 0 22 * * * PT8H", "UTC")

    assert windows.since(utc("2026-12-07T05:59")) == utc("2026-12-04T22:00")  # Friday night, the weekend, two nights
    assert windows.since(utc("2026-12-08T22:00")) == utc("2026-12-08T22:00")
    assert windows.since(utc("2026-12-08T12:00")) is None


def test_stretches_begin_with_the_open_one_and_join_windows_without_a_pause():
    windows = parse_windows("cron: 0 0 * * sat P2D; cron: 0 22 * * * PT8H", "UTC")

    assert [
        (utc("2026-12-04T22:00"), utc("2026-12-07T06:00")),  # Friday night, the weekend, two nights
        (utc("2026-12-07T22:00"), utc("2026-12-08T06:00")),
    ] == list(islice(windows.stretches(utc("2026-12-05T12:00")), 2))
    assert (utc("2026-12-07T22:00"), utc("2026-12-08T06:00")) == next(windows.stretches(utc("2026-12-07T06:00")))


def test_windows_that_never_open_again_have_no_stretches():
    windows = parse_windows("2027-01-01 P1D")

    assert [(utc("2027-01-01"), utc("2027-01-02"))] == list(windows.stretches(utc("2026-12-05")))
    assert [] == list(windows.stretches(utc("2027-01-02")))


def test_a_stretch_of_too_many_windows_has_no_end():
    windows = parse_windows("cron: 0 0 0 * * * 2027,2030-2033 P1D")

    assert [(utc("2027-01-01"), utc("2028-01-01")), (utc("2030-01-01"), None)] == list(
        windows.stretches(utc("2026-12-05"))
    )


def test_windows_are_described_in_words():
    windows = parse_windows("cron: 0 0 * * sat P2D; cron: 0 22 * * * PT8H30M", "Europe/Berlin")

    assert (
        "at 00:00 on Saturday (Europe/Berlin) for 2 days; at 22:00 (Europe/Berlin) for 8 hours and 30 minutes"
        == windows.describe()
    )


def test_a_naive_instant_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        parse_windows(NIGHT, "UTC").covers(datetime(2026, 12, 7))


def test_deferring_is_the_earliest_free_moment():
    windows = parse_windows("cron: 0 0 * * sat P2D; cron: 0 22 * * * PT8H", "Europe/Berlin")
    moment = utc("2026-12-03T12:00")
    while moment < utc("2026-12-09"):
        free = windows.defer(moment)
        assert free is not None
        assert not windows.covers(free)
        assert windows.covers(moment) == (free > moment)
        probe = moment
        while probe < free:
            assert windows.covers(probe)
            probe += timedelta(minutes=37)
        moment += timedelta(minutes=97)


def test_twenty_references_are_read_and_a_million_are_refused_unread():
    empty = {"x": parse_windows([])}

    assert not parse_windows(["window: x"] * 20, named=empty).covers(utc("2026-12-05"))
    with pytest.raises(InvalidSchedule, match="blackout has 1000000 elements, more than 20"):
        parse_windows(["window: x"] * 1_000_000, named=empty)


def test_a_text_of_windows_has_a_bound_and_a_recurrence_set_of_4000_characters_is_within_it():
    dates = ",".join(f"{year}0101T000000" for year in range(1_000, 1_249))
    text = f"RDATE:{dates} PT1H"

    assert len(text) > 3_900
    assert parse_windows([text]).covers(utc("1248-01-01T00:30"))
    with pytest.raises(InvalidSchedule, match=r"blackout has an element of 4251 characters, more than 4250"):
        parse_windows(["window: x", "x" * 4_251])
