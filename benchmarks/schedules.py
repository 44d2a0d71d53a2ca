"""How fast the engine answers, beside croniter in the same run: `python benchmarks/schedules.py`.

Absolute figures depend on the machine and on what else it does; the ratios are what to read. Each figure is the best
of five rounds of processor time. "parse+next" is a text of which not even a field was seen before, "from cache" one
that was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from croniter import croniter

from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.cron_fields import read_field
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


def rate(action: Callable[[], object], times: int) -> float:
    """Return how often a second the action can be done."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            action()
        best = min(best, time.process_time() - begun)
    return times / best


def rates(text: str, zone: str) -> dict[str, float]:
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
        "parse+next": rate(unseen, 2_000),
        "from cache": rate(lambda: parse(text, zone).next(BASE), 20_000),
        "next": rate(lambda: schedule.next(BASE), 20_000),
        "croniter parse+next": rate(lambda: croniter(text, local).get_next(datetime), 500),
        "croniter next": rate(croniter_next, 1_000),
    }


def main() -> None:
    """Print both tables."""
    print(f"{'':34}{'ours, calls a second':>38}{'croniter':>22}{'times faster':>24}")
    heads = ("parse+next", "from cache", "next", "parse+next", "next", "parse+next", "from cache", "next")
    print(f"{'':33}" + "".join(f"{head:>12}" for head in heads))
    for text in EXPRESSIONS:
        for zone in ZONES:
            found = rates(text, zone)
            parsed, cached, kept, theirs_parsed, theirs_kept = found.values()
            line = "".join(f"{value:12,.0f}" for value in found.values())
            ratios = (parsed / theirs_parsed, cached / theirs_parsed, kept / theirs_kept)
            print(f"{text:15}{zone:18}{line}" + "".join(f"{ratio:11.1f}x" for ratio in ratios))
    print("\ncount over ten years, milliseconds (first call, then again)")
    for text, zone in COUNTED:
        schedule, until = parse(text, zone, anchor=BASE), BASE.replace(year=2036)
        elapsed = []
        for _ in range(2):
            begun = time.perf_counter()
            number = schedule.count(BASE, until)
            elapsed.append((time.perf_counter() - begun) * 1_000)
        print(f"{text:34}{number:>14,}{elapsed[0]:>10.3f}{elapsed[1]:>10.3f}")


if __name__ == "__main__":
    main()
