"""How the fuzz tests run: input after input while there is time, and a line with the number of inputs."""

from __future__ import annotations

import functools
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.harness.cost import loops_for

SECONDS = float(os.environ.get("PGBEAT_TEST_FUZZ", "2"))  # of each test
CHUNK = 100  # examples between two looks at the clock
SLOW = 50  # of these loops take a quarter of a second or less: see `harness/cost.py`
SEEDS = Path(".fuzz")
MARKS = [pytest.mark.timeout(3 * SECONDS + 180)]


def fuzzed(**strategies: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with examples of these strategies while there is time. Failing ones are kept, and tried first."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        count = 0

        @functools.wraps(test)
        def counted(*arguments: Any, **keywords: Any) -> None:
            nonlocal count
            count += 1
            test(*arguments, **keywords)

        chunk = settings(max_examples=CHUNK, deadline=None, suppress_health_check=list(HealthCheck))(
            given(**strategies)(counted)
        )

        @functools.wraps(chunk)
        def chunks(*arguments: Any, **keywords: Any) -> None:
            ends = time.monotonic() + SECONDS
            while True:
                chunk(*arguments, **keywords)
                if time.monotonic() >= ends:
                    break
            report(count)

        return chunks

    return decorate


def attack(check: Callable[[random.Random], None]) -> None:
    """Let a check choose its input while there is time. Seeds with which it fails are kept, and tried first."""
    kept = SEEDS / name_of(check)
    seeds = [int(seed) for seed in kept.read_text().split()] if kept.exists() else []
    ends = time.monotonic() + SECONDS
    count = 0
    while count < len(seeds) or count == 0 or time.monotonic() < ends:
        seed = seeds[count] if count < len(seeds) else random.getrandbits(64)
        try:
            check(random.Random(seed))
        except Exception as error:
            SEEDS.mkdir(exist_ok=True)
            kept.write_text(" ".join(map(str, dict.fromkeys([seed, *seeds]))))
            raise AssertionError(f"with random.Random({seed}): {error!r}"[:5_000]) from error
        count += 1
    report(count)


def name_of(check: Callable[..., None]) -> str:
    """Return the name of a check, which may have some of its arguments already."""
    check = getattr(check, "func", check)
    return f"{check.__module__}.{check.__name__}"


def report(count: int) -> None:
    """Print the number of inputs; pytest shows it with `-rP`, and after a failure."""
    print(f"{count:,} inputs")


def quickly(action: Callable[[], Any]) -> Any:
    """Return what an action returns, or what it raises; it must not take long, also the second and the third time."""
    begun = time.process_time()
    try:
        return action()
    finally:
        if time.process_time() - begun > 0.05:
            assert loops_for(lambda: _tried(action)) < SLOW


def _tried(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception:  # noqa: BLE001  only the first call's error matters
        return
