"""Intervals in plain English."""

from __future__ import annotations

from ..durations import read_iso, read_spoken
from ..words import duration_in_words


def describe_interval(text: str) -> str:
    """Return `every 1 hour and 30 minutes` for `every 1h30m`."""
    spoken = text.removeprefix("every ")
    return "every " + duration_in_words(read_iso(text) if spoken == text else read_spoken(spoken))
