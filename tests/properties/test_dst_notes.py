"""What people are told about the nights on which the clocks change."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from celery_pgbeat.schedules import Schedule, dst_note, dst_skips, parse
from tests.harness.schedule_texts import LEAPS, UTC, calendars, chain, cron5, crontabs, dsts, zones
from tests.properties.test_schedule_properties import made

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
FORWARD = "the clocks go forward from 02:00 to 03:00: "
HALF_FORWARD = "the clocks go forward from 02:00 to 02:30: "
BACK = "the clocks go back from 03:00 to 02:00: "
AMERICAN_BACK = "the clocks go back from 02:00 to 01:00: "
HALF_BACK = "the clocks go back from 02:00 to 01:30: "
DAILY = "RRULE:FREQ=DAILY;BYMINUTE={};BYSECOND=0;BYHOUR={}"

# text, zone, the day, and for each occurrence of that day that has a note: what the clock shows, and the note.
SPRING = [
    ("30 2 * * *", BERLIN, "2027-03-28", {"03:00": FORWARD + "02:30 does not exist, so it runs right after"}),
    ("crontab: 30 2 * * *", BERLIN, "2027-03-28", {"03:00": FORWARD + "02:30 does not exist, so it runs right after"}),
    ("30 2 * * *", NEW_YORK, "2027-03-14", {"03:00": FORWARD + "02:30 does not exist, so it runs right after"}),
    ("15 2 * * *", LORD_HOWE, "2026-10-04", {"02:30": HALF_FORWARD + "02:15 does not exist, so it runs right after"}),
    ("30 2 * * *", LORD_HOWE, "2026-10-04", {}),
    ("10 30 2 * * *", BERLIN, "2027-03-28", {"03:00": FORWARD + "02:30:10 does not exist, so it runs right after"}),
    (
        "15,30,45 2 * * *",
        BERLIN,
        "2027-03-28",
        {"03:00": FORWARD + "02:15, 02:30 and 02:45 do not exist, so they run once, right after"},
    ),
    (
        "0-9 2 * * *",
        BERLIN,
        "2027-03-28",
        {"03:00": FORWARD + "02:00 and 9 later times do not exist, so they run once, right after"},
    ),
    ("0 2,3 * * *", BERLIN, "2027-03-28", {"03:00": FORWARD + "02:00 does not exist, this run stands for it too"}),
    ("*/30 * * * *", BERLIN, "2027-03-28", {}),
    ("02:30", BERLIN, "2027-03-28", {}),
    (DAILY.format(30, 2), BERLIN, "2027-03-28", {"03:30": FORWARD + "02:30 does not exist, so it runs at 03:30"}),
    (
        DAILY.format(15, 2),
        LORD_HOWE,
        "2026-10-04",
        {"02:45": HALF_FORWARD + "02:15 does not exist, so it runs at 02:45"},
    ),
    (
        "RRULE:FREQ=HOURLY",
        NEW_YORK,
        "2027-03-14",
        {"03:00": FORWARD + "02:00 does not exist, this run stands for it too"},
    ),
    ("2027-03-28T02:30", BERLIN, "2027-03-28", {"03:30": FORWARD + "02:30 does not exist, so it runs at 03:30"}),
    ("2027-03-28T01:30Z", BERLIN, "2027-03-28", {}),
    ("R/2027-01-01T02:30/P1D", BERLIN, "2027-03-28", {"03:30": FORWARD + "02:30 does not exist, so it runs at 03:30"}),
    (
        "R/2027-01-01T02:30/2027-04-01/P1D",
        BERLIN,
        "2027-03-28",
        {"03:30": FORWARD + "02:30 does not exist, so it runs at 03:30"},
    ),
    ("R/2027-03-28T00:30/PT1H", BERLIN, "2027-03-28", {}),
    ("every 30 minutes", BERLIN, "2027-03-28", {}),
    ("P1DT1H", BERLIN, "2027-03-28", {}),
    ("CRON_TZ=UTC 30 1 * * *", BERLIN, "2027-03-28", {}),
]
AUTUMN = [
    ("30 2 * * *", BERLIN, "2027-10-31", {"02:30": BACK + "02:30 comes twice, it runs in the first pass only"}),
    (
        "30 1 * * *",
        NEW_YORK,
        "2027-11-07",
        {"01:30": AMERICAN_BACK + "01:30 comes twice, it runs in the first pass only"},
    ),
    ("45 1 * * *", LORD_HOWE, "2026-04-05", {"01:45": HALF_BACK + "01:45 comes twice, it runs in the first pass only"}),
    ("30 3 * * *", BERLIN, "2027-10-31", {}),
    ("0 2 * * *", NEW_YORK, "2027-11-07", {}),
    (
        "30 * * * *",
        BERLIN,
        "2027-10-31",
        {
            "02:30": BACK + "02:30 comes twice, this is the first pass",
            "02:30 again": BACK + "02:30 comes twice, this is the second pass",
        },
    ),
    ("02:30", BERLIN, "2027-10-31", {"02:30": BACK + "02:30 comes twice, it runs in the first pass only"}),
    (DAILY.format(30, 2), BERLIN, "2027-10-31", {"02:30": BACK + "02:30 comes twice, it runs in the first pass only"}),
    ("2027-10-31T02:30", BERLIN, "2027-10-31", {"02:30": BACK + "02:30 comes twice, it runs in the first pass only"}),
    ("2027-10-31T02:30+01:00", BERLIN, "2027-10-31", {}),
    ("every 30 minutes", BERLIN, "2027-10-31", {}),
]


def day_of(zone: str, date: str) -> tuple[datetime, datetime]:
    """Return when a day begins there, less a moment, and when it ends."""
    midnight = datetime.fromisoformat(date)
    first, last = (
        day.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for day in (midnight, midnight + timedelta(days=1))
    )
    return first - timedelta(seconds=1), last - timedelta(seconds=1)


def notes_of(schedule: Schedule, zone: str, date: str) -> dict[str, str]:
    """Return the notes of a day by what the clock shows then."""
    found: dict[str, str] = {}
    for instant in schedule.occurrences(*day_of(zone, date)):
        note = dst_note(schedule, instant)
        clock = f"{instant.astimezone(ZoneInfo(zone)):%H:%M}"
        if note is not None:
            found[f"{clock} again" if clock in found else clock] = note
    return found


@pytest.mark.parametrize(("text", "zone", "date", "expected"), SPRING)
def test_a_run_moved_out_of_a_gap_has_a_note(text, zone, date, expected):
    assert expected == notes_of(parse(text, zone), zone, date)


@pytest.mark.parametrize(("text", "zone", "date", "expected"), AUTUMN)
def test_the_note_on_a_run_in_an_overlap_names_the_pass(text, zone, date, expected):
    assert expected == notes_of(parse(text, zone), zone, date)


@pytest.mark.parametrize("text", ["30 2 * * *", "02:30", DAILY.format(30, 2)])
def test_under_all_a_fixed_time_has_two_passes(text):
    expected = {
        "02:30": BACK + "02:30 comes twice, this is the first pass",
        "02:30 again": BACK + "02:30 comes twice, this is the second pass",
    }

    assert expected == notes_of(parse(text, BERLIN, dst="all"), BERLIN, "2027-10-31")


def test_under_once_the_note_on_a_wildcard_says_that_the_second_pass_is_left_out():
    found = notes_of(parse("30 * * * *", BERLIN, dst="once"), BERLIN, "2027-10-31")

    assert {"02:30": BACK + "02:30 comes twice, it runs in the first pass only"} == found


def test_the_note_on_a_skipped_day_has_its_date():
    skips = list(dst_skips(parse("0 12 * * *", "Pacific/Apia"), *day_of("Pacific/Apia", "2011-12-31")))

    assert [
        "on Fri 2011-12-30 the clocks go forward from 2011-12-30 00:00 to 2011-12-31 00:00: "
        "2011-12-30 12:00 does not exist, so nothing runs for it"
    ] == skips


@pytest.mark.parametrize(
    ("text", "dst", "left_out"),
    [
        ("02:30", "default", "02:30 does not exist, so nothing runs for it"),
        ("*:0/30", "default", "02:00 and 02:30 do not exist, so nothing runs for them"),
        ("*/30 * * * *", "default", "02:00 and 02:30 do not exist, so nothing runs for them"),
        ("* * * * *", "default", "02:00 and 59 later times do not exist, so nothing runs for them"),
        ("30 2 * * *", "skip", "02:30 does not exist, so nothing runs for it"),
        (DAILY.format(30, 2), "skip", "02:30 does not exist, so nothing runs for it"),
        ("2027-03-28 02:30", "skip", "02:30 does not exist, so nothing runs for it"),
    ],
)
def test_readings_that_never_run_are_listed(text, dst, left_out):
    schedule = parse(text, BERLIN, dst=dst)

    assert [f"on Sun 2027-03-28 {FORWARD}{left_out}"] == list(dst_skips(schedule, *day_of(BERLIN, "2027-03-28")))
    assert [] == list(dst_skips(schedule, *day_of(BERLIN, "2027-03-27")))


@pytest.mark.parametrize(
    "text", ["30 2 * * *", DAILY.format(30, 2), "2027-03-28 02:30", "0 9 * * *", "every 30m", "P1D", "P1DT1H"]
)
def test_nothing_is_left_out_where_every_reading_runs(text):
    assert [] == list(dst_skips(parse(text, BERLIN), *day_of(BERLIN, "2027-03-28")))


def test_without_an_end_the_next_hundred_years_are_listed():
    skips = list(dst_skips(parse("2027-03-28 02:30", BERLIN, dst="skip"), datetime(2026, 1, 1, tzinfo=UTC)))

    assert 1 == len(skips)


@pytest.mark.parametrize("ask", [dst_note, lambda schedule, at: list(dst_skips(schedule, at))])
def test_a_naive_instant_is_refused(ask):
    with pytest.raises(ValueError, match="no time zone"):
        ask(parse("30 2 * * *", BERLIN), datetime(2027, 3, 28))


@settings(max_examples=150, deadline=None, database=None)
@given(
    st.one_of(cron5, crontabs, calendars),
    zones,
    dsts,
    st.builds(lambda leap, minutes: leap + timedelta(minutes=minutes), st.sampled_from(LEAPS), st.integers(-200, 100)),
)
def test_an_occurrence_has_a_note_if_zoneinfo_finds_it_ambiguous_or_the_text_does_not_mean_it(text, zone, dst, after):
    schedule, readings = made(text, zone, dst), made(text, "UTC", dst)

    for instant in chain(schedule, after):
        note = dst_note(schedule, instant) or ""
        local = instant.astimezone(ZoneInfo(zone))
        assert (local.replace(fold=0).utcoffset() > local.replace(fold=1).utcoffset()) == ("comes twice" in note)
        assert ("second pass" in note) <= (local.fold == 1)
        assert ("right after" in note) != readings.matches(local.replace(tzinfo=UTC))
