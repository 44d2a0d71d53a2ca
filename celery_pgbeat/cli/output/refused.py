"""What code declares and beats refuse, as `list` and `health` show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from celery_pgbeat.cli.output.values import say

STATE = "refused"


def print_refused(refused: Iterable[dict[str, Any]]) -> None:
    """Print a line for each to stderr, so that a program that reads the table does not see it."""
    for one in refused:
        what = f"{one['name']!r} in {one['app']}: {one['reason']}"
        say(what, label="Refused", colour="red", err=True)


def as_row(refused: dict[str, Any]) -> dict[str, Any]:
    """Return one as JSON values beside rows: a name, the manager that it would have, and why it has no row."""
    return {
        "name": refused["name"],
        "managed_by": refused["app"],
        "state": STATE,
        "problem": refused["reason"],
        "seen_at": refused["seen_at"],
    }
