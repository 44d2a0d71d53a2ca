"""How long a round lasts, and how late it may be: short in the ordinary test run, full under `tox -e faults`.

Counts of what was lost or doubled are never relaxed.
"""

from __future__ import annotations

import os

import pytest

from tests.harness.cost import slowness

FULL = 60.0  # seconds of a full round, and of a full outage
SECONDS = float(os.environ.get("PGBEAT_TEST_SECONDS", "6"))  # how long a round under load lasts
AWAY = float(os.environ.get("PGBEAT_TEST_OUTAGE", "6"))  # how long a server is away
SLACK = float(os.environ.get("PGBEAT_TEST_SLACK", "4"))  # what bounds of lateness are multiplied by on a busy machine
SLOWNESS = min(slowness(), 4.0)  # and, measured once, by how much slower than an ordinary machine this one is
MARKS = pytest.mark.timeout(900 if SECONDS >= FULL else 180)
LEASE = 3  # seconds; of the beats under faults, so that a round sees many of them


def part(full: int, *, least: int = 1) -> int:
    """Return as many rows, rounds or jobs of a full round as this one has time for."""
    return max(least, round(full * min(1.0, SECONDS / FULL)))


def within(seconds: float) -> float:
    """Return a bound of lateness, as this machine can keep it."""
    return seconds * SLACK * SLOWNESS
