"""Varied entries, for each scheduler that takes Celery's crontab, intervals and solar events."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")

# minute, hour, day of month, month, day of week
CRONTABS = (
    ("0", "3", "*", "*", "*"),
    ("*/30", "*", "*", "*", "*"),
    ("30", "2", "*", "*", "*"),
    ("15", "9-17", "*", "*", "mon-fri"),
    ("0", "0", "20-31", "*", "1"),
    ("0", "12", "*/2", "*", "0,3,6"),
    ("0", "*/4", "*", "*", "*"),
    ("5,35", "1", "*", "*", "*"),
    ("59", "23", "*", "3,10", "*"),
    ("0", "6", "*", "*", "sunday"),
)
INTERVALS = ((20, "minutes"), (35, "minutes"), (1, "hours"), (9, "hours"), (1, "days"), (2, "days"))
EACH_SECOND = tuple(f"each second {number:02}" for number in range(50))  # entries of a cut-over under load


FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
COUNT = "PGBEAT_TEST_ENTRIES_DRAWN"
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class Varied:
    """An entry that was drawn: either the fields of a crontab, in a zone, or an interval."""

    name: str
    zone: str
    crontab: Mapping[str, str] | None = None
    interval: tuple[int, str] | None = None


def varied() -> list[Varied]:
    """Draw the number of entries that the environment names, the same ones each time.

    None runs more often than every ten minutes, so that a week has few runs.
    """
    draw = random.Random(20)
    return [_drawn(draw, f"varied {number:04}") for number in range(int(os.environ.get(COUNT, "0")))]


def _drawn(draw: random.Random, name: str) -> Varied:
    zone = draw.choice(ZONES)
    if draw.random() < 0.2:
        every, unit = draw.choice(((draw.randint(10, 999), "minutes"), (draw.randint(1, 50), "hours")))
        return Varied(name, zone, interval=(every, unit))
    return Varied(name, zone, crontab=dict(zip(FIELDS, _crontab(draw), strict=True)))


def _crontab(draw: random.Random) -> tuple[str, ...]:
    def some(low: int, high: int, most: int) -> str:
        return ",".join(map(str, sorted(draw.sample(range(low, high + 1), draw.randint(1, most)))))

    def bounds(low: int, high: int) -> str:
        begin, end = sorted(draw.sample(range(low, high + 1), 2))
        return f"{begin}-{end}"

    first, last = sorted(draw.sample(range(7), 2))
    steps = f"*/{draw.choice((10, 15, 20, 25, 30, 45))}", f"{draw.randint(0, 30)}-59/15"
    minute = draw.choice((some(0, 59, 4), *steps))
    steps = f"*/{draw.randint(2, 9)}", f"{draw.randint(0, 9)}-23/2"
    hour = draw.choice((some(0, 23, 4), "*", "2", "1-3", bounds(0, 23), *steps))
    day = draw.choice(("*", "*", "*", some(1, 31, 9), bounds(1, 31), f"*/{draw.randint(2, 5)}"))
    month = draw.choice(("*", "*", "*", "*", "3,10", f"*/{draw.randint(2, 3)}", bounds(1, 12)))
    weekday = draw.choice(
        ("*", "*", "*", "sun", f"{WEEKDAYS[first]}-{WEEKDAYS[last]}", ",".join(draw.sample(WEEKDAYS, 3)))
    )
    return minute, hour, day, month, weekday
