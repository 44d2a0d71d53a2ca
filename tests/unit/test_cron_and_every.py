"""`cron` and `every` with arguments by name, in Celery's words and in those of a timedelta."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import celery
import pytest
from celery.schedules import crontab

from celery_pgbeat import cron, every
from celery_pgbeat.declare import timing_of
from celery_pgbeat.errors import InvalidSchedule

make_cron: Any = cron
make_every: Any = every
MONTH = "january" if celery.VERSION >= (5, 5) else "1"


@pytest.mark.parametrize(
    "fields",
    [
        {"minute": 0, "hour": 3},
        {"minute": "*/5", "day_of_week": "mon-fri"},
        {"minute": "*", "hour": 3},
        # Celery knows names of months since 5.5.
        {"minute": {0, 30}, "hour": range(8, 18), "day_of_month": "1,15", "month_of_year": MONTH},
        {"minute": 0, "hour": 0, "day_of_month": "1-7", "day_of_week": "monday"},
    ],
)
def test_the_fields_of_cron_have_the_meaning_of_celerys_crontab(fields: dict[str, Any]) -> None:
    assert timing_of(crontab(**fields), "UTC") == timing_of(make_cron(**fields), "UTC")


def test_fields_may_have_a_zone() -> None:
    assert "Europe/Berlin" == cron(minute=0, hour=3, timezone="Europe/Berlin").timezone


@pytest.mark.parametrize(
    ("units", "text"),
    [
        ({"minutes": 5}, "every 5m"),
        ({"hours": 1, "minutes": 30}, "every 1h30m"),
        ({"weeks": 1, "days": 1}, "every 8d"),
        ({"seconds": 0.5}, "every 0.5s"),
        ({"hours": 0, "minutes": 2}, "every 2m"),
    ],
)
def test_the_units_of_every_are_those_of_a_timedelta(units: dict[str, Any], text: str) -> None:
    assert text == every(**units).text
    assert every(timedelta(**units)) == every(**units)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: make_cron(hour=3),
            "'cron(hour=3)': minute is missing, and Celery's crontab would run in every minute",
        ),
        (lambda: make_cron(hour=3), "give minute=0 for one run an hour, or minute='*' for one each minute"),
        (lambda: make_cron(day_of_week="mon"), "minute is missing"),
        (lambda: make_cron("0 3 * * *", hour=3), "cron('0 3 * * *', hour=3)\": give an expression or fields, not both"),
        (make_cron, "'cron()': give an expression such as '0 3 * * *', or minute=0, hour=3"),
        (lambda: make_cron(minute=0, hour=25), "hour 25 is not in 0-23"),
        (lambda: make_cron(minute=0.5), "minute is 0.5, not a number, text or several numbers"),
        (lambda: make_cron(minute=True), "minute is True, not a number"),
        (lambda: make_cron(minute=[]), "minute is [], not a number"),
        (lambda: make_cron(minute=["0"]), "minute is ['0'], not a number"),
        (lambda: make_cron("every 5m"), "not a cron expression"),
        (lambda: make_cron(5), "an int, not text"),
        (lambda: make_every("5m", minutes=5), "every('5m', minutes=5)\": give an interval or units, not both"),
        (make_every, "'every()': give text such as '5m', or units such as minutes=5"),
        (lambda: make_every(minutes="5"), "minutes is '5', not a number"),
        (lambda: make_every(minutes=True), "minutes is True, not a number"),
        (lambda: make_every(minutes=float("nan")), "minutes is nan, not a number"),
        (lambda: make_every(minutes=0), "an interval must be longer than 0"),
        (lambda: make_every(weeks=1e9), "an interval must not be longer than 100 years"),
    ],
)
def test_a_wrong_call_says_what_to_write(call: Any, said: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        call()

    assert said in str(refused.value)
