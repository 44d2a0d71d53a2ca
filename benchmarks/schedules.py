"""Schedules: how fast the package computes instants, beside croniter in the same run.

Processor time, not time on the clock. "parse+next" is a text of which not even a field was seen before, "from cache"
one that was, "next" a schedule in hand.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from croniter import croniter

from benchmarks.ground import Ground
from benchmarks.results import Figure
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.cron.fields import read_field
from celery_pgbeat.schedules.parse import read

ROUNDS = 5
BASE = datetime(2026, 12, 7, 10, 7, tzinfo=timezone.utc)
EXPRESSIONS = ("*/5 * * * *", "0 9 * * 1-5", "30 2 1 * *", "0 0 1 1 *")
ZONES = ("UTC", "America/New_York")
COUNTED = (
    ("* * * * *", "America/New_York"),
    ("every 1s", "UTC"),
    ("*-*-* 9..17:0/10 Europe/Berlin", "UTC"),
    ("RRULE:FREQ=MINUTELY;BYHOUR=9", "UTC"),
)


def measured(action: Callable[[], object], times: int) -> list[float]:
    """Return how often a second the action can be done, by round."""
    found = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            action()
        found.append(times / (time.process_time() - begun))
    return found


def rates(text: str, zone: str) -> dict[str, list[float]]:
    """Return the rates of ours and of croniter's for one expression."""
    schedule, local = parse(text, zone), BASE.astimezone(ZoneInfo(zone))
    theirs = croniter(text, local)

    def croniter_next() -> object:
        theirs.set_current(local, force=True)
        return theirs.get_next(datetime)

    def unseen() -> object:
        read_field.cache_clear()
        return read(text, zone).next(BASE)

    return {
        "parse+next": measured(unseen, 2_000),
        "from cache": measured(lambda: parse(text, zone).next(BASE), 20_000),
        "next": measured(lambda: schedule.next(BASE), 20_000),
        "croniter parse+next": measured(lambda: croniter(text, local).get_next(datetime), 500),
        "croniter next": measured(croniter_next, 1_000),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(_ground: Ground, _options: argparse.Namespace) -> list[Figure]:
    """Measure the next run of some texts in two zones, and the counting of others."""
    asked = [figure for text in EXPRESSIONS for zone in ZONES for figure in _asked(text, zone)]
    return asked + [figure for text, zone in COUNTED for figure in _counted(text, zone)]


def _asked(text: str, zone: str) -> list[Figure]:
    found = {name: Figure(f"{text} {zone}: {name}", "calls/s", values) for name, values in rates(text, zone).items()}
    for name, theirs in (("parse+next", "parse+next"), ("from cache", "parse+next"), ("next", "next")):
        found[name].beside(f"croniter's {theirs}", found[f"croniter {theirs}"])
    return list(found.values())


def _counted(text: str, zone: str) -> list[Figure]:
    """Count over ten years: the first call, and the second."""
    schedule, until = parse(text, zone, anchor=BASE), BASE.replace(year=2036)
    elapsed = []
    for _ in range(2):
        begun = time.perf_counter()
        schedule.count(BASE, until)
        elapsed.append((time.perf_counter() - begun) * 1000)
    calls = zip(("first", "again"), elapsed, strict=True)
    return [Figure(f"{text} {zone}: count over ten years, {call}", "ms", [value]) for call, value in calls]
