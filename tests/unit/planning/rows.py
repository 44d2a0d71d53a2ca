"""Rows as planning reads them, for its tests."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from celery_pgbeat import planning
from celery_pgbeat.planning import Decision, Due, Rules, Unplanned

RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))
NEW_YEAR = datetime(2026, 1, 1, tzinfo=timezone.utc)


def at(clock: str, day: int = 7) -> datetime:
    hour, minute, *second = (int(part) for part in clock.split(":"))
    return datetime(2026, 12, day, hour, minute, *second, tzinfo=timezone.utc)


COLUMNS: dict[str, Any] = {
    "name": "a",
    "schedule": "*/5 * * * *",
    "timezone": None,
    "anchor": NEW_YEAR,
    "dst": "default",
    "start_at": None,
    "end_at": None,
    "max_runs": None,
    "run_count": 0,
    "jitter": None,
    "blackout": None,
    "blackout_action": "defer",
    "windows": {},
    "held_back": None,
    "revision": 1,
    "planned_from": NEW_YEAR,
}


def decide(row: Due) -> Decision:
    """Decide about a row that is free to start something."""
    decision = planning.decide(row, RULES)
    assert isinstance(decision, Decision)
    return decision


def definition(**changes: Any) -> Unplanned:
    return Unplanned(**{**COLUMNS, **changes})


# What a mark adds to the columns above, but for the instants.
MARKED: dict[str, Any] = {
    "task": "app.probe",
    "args": "[]",
    "kwargs": "{}",
    "queue": None,
    "priority": None,
    "options": "{}",
    "sensitive": False,
    "catchup": "latest",
    "catchup_window": None,
    "catchup_limit": None,
    "max_run_time": None,
    "taken_over": False,
    "created_at": NEW_YEAR,
}


def due(now: datetime, next_run_at: datetime, **changes: Any) -> Due:
    instants = {"next_run_at": next_run_at, "planned_for": next_run_at, "last_run_at": None, "marked_at": now}
    return Due(**{**COLUMNS, **MARKED, **instants, **changes})
