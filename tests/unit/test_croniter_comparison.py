"""Where croniter would run a cron text at other instants."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from croniter import croniter

from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.cron.croniter_comparison import Difference, compare_with_croniter

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
    ("text", "ours", "theirs"),
    [
        ("30 0 9 * * *", "2026-12-01T09:00:30", "2026-12-09T00:30"),
        ("0 0 1 6-6 *", "2027-06-01", "2027-01-01"),
        ("4-4/3 * * * *", "2026-12-01T00:04", "2026-12-01T00:03"),
        ("0 0 * * 7/1", "2026-12-06", "2026-12-02"),
        ("55-5/7 * * * *", "2026-12-01T00:02", "2026-12-01T00:03"),
        ("0 0 */2 * 1", "2026-12-07", "2026-12-03"),
        ("* * */2 * 1", "2026-12-07", "2026-12-01T00:01"),
        ("0 0 4 * 1#2", "2026-12-04", None),
        ("0 0 L * L5", "2026-12-31", "2027-01-29"),
        ("0 0 15W * 1", "2026-12-07", "2026-12-15"),
    ],
)
def test_the_first_difference_is_found(text: str, ours: str, theirs: str) -> None:
    assert Difference(at(ours), at(theirs)) == compare_with_croniter(text, "UTC", DECEMBER)


@pytest.mark.parametrize(
    ("text", "dst", "ours", "theirs"),
    [
        ("30 2 * * *", "default", "2027-11-01T01:30", "2027-10-31T01:30"),
        ("30 2 * * *", "skip", "2027-03-29T00:30", "2027-03-28T01:00"),
        ("*/10 * * * *", "once", "2027-10-31T02:00", "2027-10-31T01:00"),
        ("* * * * *", "once", "2027-10-31T02:00", "2027-10-31T01:00"),
    ],
)
def test_a_difference_at_a_change_of_the_clocks_is_found(text: str, dst: str, ours: str, theirs: str) -> None:
    assert Difference(at(ours), at(theirs)) == compare_with_croniter(text, BERLIN, DECEMBER, dst=dst)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("0 0 LW * *", "[0 0 lw * *] is not acceptable"),
        ("0 0 L-3 * *", "[0 0 L-3 * *] bands 'l-3' in field 2 are not acceptable"),
        ("0 0 * * 5L", "[0 0 * * 5l] is not acceptable"),
        ("0 0 * * 1#2,5", "day-of-week field does not support mixing literal values and nth day of week syntax."),
        ("CRON_TZ=UTC 0 9 * * *", "[cron_tz=utc 0 9 * * *] is not acceptable"),
        ("0 0 0 1 1 * 2030", "[0 0 0 1 1 * 2030] is not acceptable, out of range"),
        ("0 0 0 * 1 * 2027", "[0 0 0 * 1 * 2027] is not acceptable, out of range"),
    ],
)
def test_a_text_that_croniter_cannot_read_has_the_error_of_croniter(text: str, error: str) -> None:
    difference = compare_with_croniter(text, "UTC", DECEMBER)

    assert difference is not None
    assert difference.error is not None
    assert difference.error.startswith(error)


def test_a_hashed_time_is_hashed_from_other_values() -> None:
    difference = compare_with_croniter("H H * * *", "UTC", DECEMBER, name="nightly")

    assert difference is not None
    assert parse("H H * * *", name="nightly").next(DECEMBER) == difference.ours
    assert croniter("H H * * *", DECEMBER, hash_id="nightly").get_next(datetime) == difference.theirs


def test_a_wrong_text_is_refused_as_ever() -> None:
    with pytest.raises(InvalidSchedule):
        compare_with_croniter("0 25 * * *", "UTC", DECEMBER)
