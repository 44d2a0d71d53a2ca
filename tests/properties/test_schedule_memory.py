"""What many compiled schedules weigh."""

from __future__ import annotations

import itertools
import tracemalloc
from datetime import datetime, timezone

from celery_pgbeat.schedules import parse


def test_ten_thousand_different_expressions_take_less_than_20_mb():
    now = datetime(2026, 12, 7, tzinfo=timezone.utc)
    fields = itertools.product(range(60), range(24), ("*", "1", "L"), ("*", "1-6"), ("*", "1-5", "mon"))
    texts = [f"{minute} {hour} {day} {month} {weekday}" for minute, hour, day, month, weekday in fields][:10_000]
    tracemalloc.start()
    try:
        kept = [parse(text, "Europe/Berlin") for text in texts]
        for schedule in kept:
            schedule.next(now)
        weight, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 10_000 == len({schedule.text for schedule in kept})
    assert weight < 20_000_000
