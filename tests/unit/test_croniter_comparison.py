"""Where croniter would run a cron text at other instants, and the reason that is given for it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from croniter import croniter

from celery_pgbeat.croniter_comparison import compare_with_croniter
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse

DECEMBER = datetime(2026, 12, 1, tzinfo=timezone.utc)  # a Tuesday
BERLIN = "Europe/Berlin"


def at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text",
    [
        "*/5 9-17 * * mon-fri",
        "0 0 13 * 5",
        "0 0 ? * mon",
        "0 22-2 * * *",
        "0 0 29 2 *",
        "0 0 L * *",
        "0 0 * * 1#2",
        "@weekly",
        "cron: 0 3 * * *",
        "* * * * * *",
    ],
)
def test_texts_that_both_read_alike_have_no_difference(text: str) -> None:
    assert compare_with_croniter(text, "UTC", DECEMBER) is None


@pytest.mark.parametrize("text", ["*/10 * * * *", "0 9 * * *", "@hourly"])
def test_they_have_no_difference_in_a_zone_whose_clocks_change_either(text: str) -> None:
    assert compare_with_croniter(text, BERLIN, DECEMBER) is None


@pytest.mark.parametrize("text", ["every 5m", "02:30", "RRULE:FREQ=DAILY", "crontab: 0 0 1-7 * 1", "2027-01-01"])
def test_only_cron_is_compared(text: str) -> None:
    assert compare_with_croniter(text, "UTC", DECEMBER) is None


@pytest.mark.parametrize(
    ("text", "cause", "ours", "theirs"),
    [
        ("30 0 9 * * *", "seconds", "2026-12-01T09:00:30", "2026-12-09T00:30"),
        ("0 0 0 * 1 * 2027", "seconds", None, None),
        ("0 0 1 6-6 *", "field", "2027-06-01", "2027-01-01"),
        ("4-4/3 * * * *", "field", "2026-12-01T00:04", "2026-12-01T00:03"),
        ("0 0 * * 7/1", "field", "2026-12-06", "2026-12-02"),
        ("55-5/7 * * * *", "field", "2026-12-01T00:02", "2026-12-01T00:03"),
        ("0 0 */2 * 1", "star", "2026-12-07", "2026-12-03"),
        ("* * */2 * 1", "star", "2026-12-07", "2026-12-01T00:01"),
        ("0 0 4 * 1#2", "special", "2026-12-04", None),
        ("0 0 L * L5", "special", "2026-12-31", "2027-01-29"),
        ("0 0 15W * 1", "special", "2026-12-07", "2026-12-15"),
    ],
)
def test_the_first_difference_is_named_with_its_cause(text: str, cause: str, ours: str, theirs: str) -> None:
    difference = compare_with_croniter(text, "UTC", DECEMBER)

    assert difference is not None
    assert (cause, at(ours), at(theirs)) == (difference.cause, difference.ours, difference.theirs)


@pytest.mark.parametrize(
    ("text", "dst", "ours", "theirs", "reason"),
    [
        (
            "30 2 * * *",
            "default",
            "2027-11-01T01:30",
            "2027-10-31T01:30",
            "the clocks go back on 2027-10-31: times that come twice run in the first pass only here",
        ),
        (
            "30 2 * * *",
            "skip",
            "2027-03-29T00:30",
            "2027-03-28T01:00",
            "the clocks go forward on 2027-03-28: times in the gap are left out here",
        ),
        (
            "*/10 * * * *",
            "once",
            "2027-10-31T02:00",
            "2027-10-31T01:00",
            "the clocks go back on 2027-10-31: times that come twice run in the first pass only here",
        ),
    ],
)
def test_a_change_of_the_clocks_is_a_cause(text: str, dst: str, ours: str, theirs: str, reason: str) -> None:
    difference = compare_with_croniter(text, BERLIN, DECEMBER, dst=dst)

    assert difference is not None
    assert ("clocks", reason) == (difference.cause, difference.reason)
    assert (at(ours), at(theirs)) == (difference.ours, difference.theirs)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0 0 LW * *", "the day 'LW' is not in croniter's language"),
        ("0 0 L-3 * *", "the day 'L-3' is not in croniter's language"),
        ("0 0 * * 5L", "the weekday '5L' is not in croniter's language"),
        ("0 0 * * 1#2,5", "the weekday '1#2,5' is not in croniter's language"),
        ("CRON_TZ=UTC 0 9 * * *", "a zone in the text (CRON_TZ=UTC) is not in croniter's language"),
        ("0 0 0 1 1 * 2030", "the seconds come first here; croniter expects them after the weekday"),
        ("0 0 0 * * 1 2150", "the year '2150' is not in croniter's language"),
    ],
)
def test_a_text_that_croniter_cannot_read_is_named_with_what_it_lacks(text: str, reason: str) -> None:
    difference = compare_with_croniter(text, "UTC", DECEMBER)

    assert difference is not None
    assert (False, reason) == (difference.readable, difference.reason)


def test_a_hashed_time_is_hashed_from_other_values() -> None:
    difference = compare_with_croniter("H H * * *", "UTC", DECEMBER, name="nightly")

    assert difference is not None
    assert parse("H H * * *", name="nightly").next(DECEMBER) == difference.ours
    assert croniter("H H * * *", DECEMBER, hash_id="nightly").get_next(datetime) == difference.theirs
    assert "the minute 'H' is hashed from the row's name here, from hash_id by croniter" == difference.reason


def test_a_difference_late_in_the_year_is_found_in_a_text_that_runs_every_minute() -> None:
    difference = compare_with_croniter("* * * * *", BERLIN, DECEMBER, dst="once")

    assert difference is not None
    assert timedelta(days=300) < difference.theirs - DECEMBER  # type: ignore[operator]


def test_a_wrong_text_is_refused_as_ever() -> None:
    with pytest.raises(InvalidSchedule):
        compare_with_croniter("0 25 * * *", "UTC", DECEMBER)
