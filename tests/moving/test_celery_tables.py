"""What becomes of a row of django-celery-beat's tables, without a database."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from celery_pgbeat.moving.answers import Answer, Refused, Taken, answered
from celery_pgbeat.moving.kinds.celery_tables import CUT, answer_of

NOW = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
HOURLY = {"every": 1, "period": "hours"}
DAILY = {"minute": "0", "hour": "5", "day_of_week": "*", "day_of_month": "*", "month_of_year": "*", "timezone": "UTC"}


def answer(kind: str | None = "interval", schedule: dict[str, Any] | None = None, **columns: Any) -> Answer:
    """Return what becomes of a row with these columns."""
    row = {"id": 1, "name": "x", "task": "t", "enabled": True, "one_off": False, "total_run_count": 0, **columns}
    given = HOURLY if schedule is None else schedule
    return answered("x", partial(answer_of, row, kind, given, NOW, ends=True))


def taken(*given: Any, **columns: Any) -> Taken:
    """Return an answer that must be one."""
    found = answer(*given, **columns)
    assert isinstance(found, Taken), found
    return found


@pytest.mark.parametrize(
    ("columns", "anchor"),
    [
        ({"last_run_at": NOW - HOUR}, NOW - HOUR),
        ({"date_changed": NOW - 2 * HOUR}, NOW - 2 * HOUR),
        ({"last_run_at": NOW - HOUR, "start_time": NOW - 9 * HOUR}, NOW - HOUR),
        ({"last_run_at": NOW - HOUR, "start_time": NOW + HOUR}, None),  # its start counts
        ({"start_time": NOW - 9 * HOUR}, None),
        ({}, None),
    ],
)
def test_an_interval_is_counted_from_where_the_peer_counts_it(columns: dict[str, Any], anchor: datetime | None) -> None:
    assert anchor == taken(**columns).columns.get("anchor")


@pytest.mark.parametrize(
    ("kind", "schedule", "text"),
    [
        ("interval", {"every": 250_000, "period": "microseconds"}, "every 0.25s"),
        ("interval", {"every": 36, "period": "hours"}, "every 1d12h"),
        ("solar", {"event": "sunset", "latitude": 52.52, "longitude": 13.4}, "solar: sunset 52.520000 13.400000"),
        ("crontab", DAILY, "crontab: 0 5 * * *"),
        ("crontab", {**DAILY, "day_of_week": "monday,sunday"}, "crontab: 0 5 * * mon,sun"),
        ("clocked", {"clocked_time": NOW + HOUR}, "2026-12-07T13:00:00Z"),
    ],
)
def test_each_kind_of_schedule_has_its_text(kind: str, schedule: dict[str, Any], text: str) -> None:
    assert text == taken(kind, schedule).schedule.text


@pytest.mark.parametrize(
    ("kind", "schedule", "columns", "reason"),
    [
        (None, None, {}, "it has no schedule: the peer never runs it"),
        ("crontab", {}, {}, "its crontab schedule is missing"),
        ("interval", {"every": 0, "period": "hours"}, {}, "an interval must be longer than 0"),
        ("interval", {"every": 2**31 - 1, "period": "days"}, {}, "an interval must not be longer than 100 years"),
        ("interval", {"every": "x", "period": "hours"}, {}, "hours is 'x', not a number"),
        ("interval", {"every": 1, "period": "months"}, {}, "unexpected keyword argument 'months'"),
        ("crontab", {**DAILY, "day_of_week": "8"}, {}, "Celery refuses its crontab: "),
        ("crontab", {**DAILY, "day_of_month": "30", "month_of_year": "2"}, {}, "Celery refuses its crontab: "),
        ("interval", HOURLY, {"kwargs": "{"}, "kwargs is not JSON ("),
        ("interval", HOURLY, {"start_time": NOW + 2 * HOUR, "expires": NOW + HOUR}, "before its start at "),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(
    kind: str | None, schedule: dict[str, Any] | None, columns: dict[str, Any], reason: str
) -> None:
    found = answer(kind, schedule, **columns)

    assert isinstance(found, Refused)
    assert reason in found.reason


def test_a_description_is_one_line_and_cut() -> None:
    long = taken(description="word \n" * 400)

    assert (1_000, (CUT,)) == (len(long.columns["subject"]), long.changes)
    assert ("two words", ()) == (taken(description="two\nwords").columns["subject"], taken(description="two").changes)
