"""Repeating intervals and single dates in plain English."""

from __future__ import annotations

from ..durations import read_iso
from ..words import every


def describe_repeating(text: str) -> str:
    """Return a repeating interval in words."""
    head, *moments, step = text.split("/")
    words = every(read_iso(step))
    if moments:
        words += f" from {_moment(moments[0])}"
    if len(moments) > 1:
        words += f" until {_moment(moments[1])}"
    if head != "R":
        words += f", {head[1:]} times" if head != "R1" else ", once"
    return words


def describe_once(text: str) -> str:
    """Return a single date in words."""
    return f"once at {_moment(text)}"


def _moment(text: str) -> str:
    return text.replace("T", " ").replace("Z", " UTC")
