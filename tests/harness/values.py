"""Values of every kind that JSON and Python know, most of them not what was asked for."""

from __future__ import annotations

import json
import random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    0,
    1,
    -1,
    7,
    255,
    256,
    400,
    2**31 - 1,
    2**31,
    -(2**63),
    10**308,
    10**400,
    0.5,
    -0.0,
    1e300,
    1e-9,
)
TEXTS = (
    *(
        "",
        "a",
        "celery",
        "shop.report",
        "x" * 200,
        "x" * 201,
        "x" * 1_001,
        "30m",
        "2026-12-09T00:00:00Z",
        "Müller",
        "%s {} '",
    ),
    *(
        "\x1b[31m",
        "\u202etxt",
        "\x85",
        "a\nb",
        "a\0b",
        "\ud800",
        "unacked",
        "_kombu.x",
        "celery.pidbox",
        "json",
        "pickle",
        "zlib",
    ),
)
DURATIONS = (
    "30m",
    "1h30m",
    "PT5M",
    "P1D",
    "0",
    "-5s",
    "1 year",
    "50%",
    "367d",
    "every 5m",
    "1e9s",
    "P1M",
    5,
    0.1,
    1e12,
)
INSTANTS = (
    *("2026-12-09", "2026-12-09T10:00:00+02:00", "infinity", "-infinity", "now", "2026-13-01", "0001-01-01T00:00:00Z"),
    *("99999-01-01", "2026-03-29T02:30:00", "9999-12-31T23:59:59Z"),
)
LEVELS = (2, 99, 100, 101, 800, 3_000)


UNSHOWABLE = 100_000  # levels at which repr() raises on every Python; since 3.12 it shows some thousands


def nested(levels: int) -> list[Any]:
    """Return lists in lists, of this many levels."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def odd(numbers: random.Random, depth: int = 0) -> Any:
    """Return any value."""
    kind = numbers.randrange(6 if depth < 3 else 4)
    if kind == 0:
        return numbers.choice((None, True, False, float("nan"), float("inf")))
    if kind == 1:
        return numbers.choice((*NUMBERS, numbers.randint(-10, 1_000), numbers.random() * 10**9))
    if kind in (2, 3):
        return numbers.choice(TEXTS)
    if numbers.random() < 0.05:
        return nested(numbers.choice(LEVELS))
    items = [odd(numbers, depth + 1) for _ in range(numbers.randrange(4))]
    return items if kind == 4 else {numbers.choice(TEXTS): item for item in items}


def as_json(value: Any) -> str | None:
    """Return what a client can write into JSON of Postgres; None where it cannot."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return None if r"\u0000" in text or r"\ud800" in text else text
