"""Intervals, single moments and repeating intervals of ISO 8601."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from celery_pgbeat.schedules import parse
from tests.harness.schedule_texts import TICK, UTC, chain

BASE = datetime(2026, 12, 7, 10, 7, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def dates(text: str, after: str, number: int = 6, zone: str = "UTC") -> list[str]:
    return [f"{instant:%Y-%m-%d}" for instant in parse(text, zone).occurrences(utc(after) - TICK, limit=number)]


def test_the_readme_example_first_runs_on_the_next_day():  # S-1
    assert utc("2026-12-08") == parse("R/2024-07-01/P1D").next(utc("2026-12-07T10:00"))


@pytest.mark.parametrize(  # S-2
    ("text", "expected"),
    [
        ("R/2024-07-01T12:00:00Z/PT1H", "2026-12-07T11:00"),
        ("R/2024-07-01T12:00:00Z/PT1H30M", "2026-12-07T10:30"),
        ("R/PT1H", "2026-12-07T11:07"),
        ("2026-12-08T12:00:00", "2026-12-08T12:00"),
        ("2026-12-08 12:00:00", "2026-12-08T12:00"),
        ("2026-12-08T12:00:00+01:00", "2026-12-08T11:00"),
        ("2026-12-08T12:00Z", "2026-12-08T12:00"),
        ("2026-12-09", "2026-12-09"),
        ("iso: 2026-12-09", "2026-12-09"),
        ("P1D", "2026-12-08T10:07"),
        ("0 0 * * *", "2026-12-08"),
        ("0 9 * * mon-fri", "2026-12-08T09:00"),
        ("0 1-5,10 * * *", "2026-12-08T01:00"),
        ("1/5 * * * *", "2026-12-07T10:11"),
        ("every 30s", "2026-12-07T10:07:30"),
        ("every 5 minutes", "2026-12-07T10:12"),
        ("every 1h30m", "2026-12-07T11:37"),
        ("every: 5m", "2026-12-07T10:12"),
        ("every: every 5 min", "2026-12-07T10:12"),
        ("every hour", "2026-12-07T11:07"),
        ("EVERY 1 Day 2 Hours", "2026-12-08T12:07"),
        ("@every 1h30m", "2026-12-07T11:37"),
        ("every PT5M", "2026-12-07T10:12"),
        ("PT5M", "2026-12-07T10:12"),
        ("pt0,5s", "2026-12-07T10:07:00.500000"),
        ("every 0.5s", "2026-12-07T10:07:00.500000"),
        ("every 250ms", "2026-12-07T10:07:00.250000"),
    ],
)
def test_the_first_time_after_registration_is(text, expected):
    assert utc(expected) == parse(text, anchor=BASE).next(BASE)


def test_a_count_is_the_number_of_firings_in_all():  # S-3
    assert ["2026-12-07", "2026-12-08", "2026-12-09", "2026-12-10", "2026-12-11"] == dates(
        "R5/2026-12-07/P1D", "2026-12-01"
    )
    assert [BASE + timedelta(days=day) for day in range(1, 6)] == chain(parse("R5/P1D", anchor=BASE), BASE)
    assert parse("R5/2026-12-07/P1D").count(utc("2020-01-01"), utc("2030-01-01")) == 5


def test_the_end_belongs_to_the_window():  # S-4
    assert len(dates("R/2026-12-07/2026-12-11/P1D", "2026-12-01")) == 5
    hour = parse("R/2026-12-07T12:00:00Z/2026-12-07T13:00:00Z/PT1M")
    assert hour.count(utc("2026-12-07"), utc("2026-12-08")) == 61
    assert hour.previous(utc("2030-01-01")) == utc("2026-12-07T13:00")
    assert parse("R3/2026-12-07/2026-12-11/P1D").count(utc("2026-12-01"), utc("2030-01-01")) == 3


def test_months_and_years_are_counted_from_the_anchor_and_clamped():  # S-5
    assert ["2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31"] == dates(
        "R/2027-01-31/P1M", "2027-01-01", 5
    )
    assert ["2029-02-28", "2030-02-28", "2031-02-28", "2032-02-29"] == dates("R/2028-02-29/P1Y", "2028-03-01", 4)


def test_a_step_of_days_keeps_the_wall_clock_and_one_of_hours_does_not():
    def local_hours(step: str) -> list[int]:
        found = parse(f"R/2026-03-28T09:00:00/{step}", "Europe/Berlin").occurrences(utc("2026-03-28"), limit=3)
        return [instant.hour for instant in found]

    assert [8, 7, 7] == local_hours("P1D")
    assert [8, 8, 8] == local_hours("PT24H")


def test_in_a_mixed_step_the_date_goes_first_on_the_wall_and_then_the_time_elapses():
    found = parse("R/2026-03-27T09:00:00/P1DT1H", "Europe/Berlin").occurrences(utc("2026-03-27"), limit=4)

    assert ["27 08:00", "28 09:00", "29 09:00", "30 10:00"] == [f"{instant:%d %H:%M}" for instant in found]


def test_a_day_that_a_zone_left_out_is_not_run_twice():
    schedule = parse("R/2011-12-28/P1D", "Pacific/Apia")
    found = list(schedule.occurrences(utc("2011-12-28T00:00"), utc("2012-01-03")))

    assert sorted(set(found)) == found
    assert len(found) == schedule.count(utc("2011-12-28T00:00"), utc("2012-01-03"))


def test_a_spoken_interval_is_elapsed_time_and_an_iso_one_follows_the_wall():
    anchor = utc("2026-03-28T08:00")

    assert utc("2026-03-29T08:00") == parse("every 1 day", "Europe/Berlin", anchor=anchor).next(anchor)
    assert utc("2026-03-29T07:00") == parse("P1D", "Europe/Berlin", anchor=anchor).next(anchor)


def test_the_grid_begins_at_the_anchor_and_not_before():
    schedule = parse("every 5m", anchor=BASE)

    assert BASE == schedule.next(BASE - timedelta(days=400))
    assert schedule.previous(BASE) is None
    assert utc("1970-01-01T00:05") == parse("every 5m").next(utc("1970-01-01"))
    assert BASE + timedelta(hours=1) == parse("R/PT1H", anchor=BASE).next(BASE - timedelta(days=1))


@pytest.mark.parametrize(("seconds", "ticks", "stepped"), [(50, 1728, 1436), (70, 1234, 1077)])  # N-8
def test_a_day_of_late_passes_costs_no_tick(seconds, ticks, stepped):
    schedule, start = parse(f"every {seconds}s", anchor=utc("2026-12-07")), utc("2026-12-07")
    found, last, drifting, from_last_run = [], start, 0, start
    for number in range(1, int(86_400 / 20.05) + 2):
        now = min(start + number * timedelta(seconds=20.05), start + timedelta(days=1))
        found += schedule.occurrences(last, now)
        last = now
        if now >= from_last_run + timedelta(seconds=seconds):  # the other rule: an interval after the last run
            drifting, from_last_run = drifting + 1, now

    assert ticks == len(found) == schedule.count(start, start + timedelta(days=1))
    assert [start + number * timedelta(seconds=seconds) for number in range(1, ticks + 1)] == found
    assert stepped == drifting


def test_years_of_seconds_are_counted_by_division():
    schedule = parse("R/2024-07-01/PT1S")

    assert schedule.count(utc("2024-07-01"), utc("2034-07-01")) == 3652 * 86400
    assert utc("2034-07-01T00:00:01") == schedule.next(utc("2034-07-01"))


def test_a_past_date_is_finished_and_no_error():  # D-29
    assert parse("2020-01-01 00:00:00").next(BASE) is None
    assert parse("2020-01-01").previous(BASE) == utc("2020-01-01")


def test_a_date_is_midnight_of_the_zone():
    assert utc("2026-12-08T23:00") == parse("2026-12-09", "Europe/Berlin").next(BASE)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("every 90 seconds", "every 1m30s"),
        ("PT90M", "every 1h30m"),
        ("P2W", "P14D"),
        ("P18M", "P1Y6M"),
        ("every 1 week", "every 7d"),
        ("r5/2026-12-07/p1w", "R5/2026-12-07T00:00:00/P7D"),
        ("R/2026-12-07T12:00:00+02:00/PT60M", "R/2026-12-07T10:00:00Z/PT1H"),
        ("2026-12-08 12:00:00.5", "2026-12-08T12:00:00.500000"),
    ],
)
def test_the_canonical_text_is(text, canonical):
    assert canonical == parse(text).text
