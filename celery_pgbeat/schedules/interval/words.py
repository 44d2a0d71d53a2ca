"""Intervals in plain English."""

from __future__ import annotations

from ..durations import read_iso, read_spoken
from ..words import every


def describe_interval(text: str) -> str:
    """Return `every 1 hour and 30 minutes` for `every 1h30m`."""
    spoken = text.removeprefix("every ")
    return every(read_iso(text) if spoken == text else read_spoken(spoken))
