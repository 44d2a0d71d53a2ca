"""Turns an entry of Celery's `beat_schedule`, or a decorated task, into the arguments of `define`.

Beside Celery's own keys an entry may have `pgbeat`, a dict of our columns (and `run_on_start`):

    app.conf.beat_schedule = {
        "nightly": {
            "task": "shop.report",
            "schedule": crontab(minute=0, hour=3),
            "pgbeat": {"overlap": "allow", "max_run_time": "30m"},
        },
    }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery_pgbeat.declare.columns import LONGEST_NAME, PAUSE, READERS
from celery_pgbeat.declare.declaration import Declaration
from celery_pgbeat.declare.timing import RELATIVE_FROM, Timing, relative_timing
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.safe_text import type_of
from celery_pgbeat.texts.suggestions import did_you_mean

KEYS = ("task", "schedule", "args", "kwargs", "options", "relative", "pgbeat")
OF_A_SCHEDULE_ENTRY = ("name", "app", "last_run_at", "total_run_count")  # Celery's state; ours is in the row
CELERY_COLUMNS = ("args", "kwargs", "options")
# Further keys that django-celery-beat takes, and the column that means the same.
OF_DJANGO_CELERY_BEAT = {"description": "subject", "start_time": "start_at", "expires": "end_at", "one_off": "max_runs"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One declaration in code."""

    name: str
    task: Any
    schedule: Any
    columns: Mapping[str, Any]
    run_on_start: bool = False


def entry_of(name: str, given: Any) -> Entry:
    """Read an entry of `beat_schedule`: a dict, or one of Celery's ScheduleEntry objects.

    Raises:
        InvalidPeriodicTask: a key is unknown or given twice; names it.
    """
    if isinstance(name, str) and len(name) > LONGEST_NAME:
        raise InvalidPeriodicTask(
            f"name has {len(name)} characters, not 1 to {LONGEST_NAME}. If Celery has made it from the call, set "
            f"one yourself: add_periodic_task(…, name='…')"
        )
    try:
        entry = dict(given)
    except (TypeError, ValueError):
        raise InvalidPeriodicTask(f"the entry is {type_of(given)}, not a dict") from None
    for key in entry:
        if key not in (*KEYS, *OF_A_SCHEDULE_ENTRY):
            raise InvalidPeriodicTask(f"the entry has {key!r}, which is none of Celery's keys{_way_of(key)}")
    ours = entry.get("pgbeat") or {}
    if not isinstance(ours, Mapping):
        raise InvalidPeriodicTask(f"'pgbeat' is {type_of(ours)}, not a dict of columns")
    if entry.get("schedule") is None and not ours.get("after"):
        raise InvalidPeriodicTask("the entry has no 'schedule', and its 'pgbeat' no 'after'")
    columns = dict(ours)
    run_on_start = bool(columns.pop("run_on_start", False))
    for key in CELERY_COLUMNS:
        if key in columns:
            raise InvalidPeriodicTask(f"'pgbeat' has {key!r}: set it in the entry itself")
        if entry.get(key):
            columns[key] = entry[key]
    schedule = entry.get("schedule")
    if entry.get("relative"):
        if isinstance(schedule, (int, float, timedelta)):
            schedule = relative_timing(schedule)
        elif isinstance(schedule, (str, Timing)):
            columns.setdefault("anchor", RELATIVE_FROM)
    return Entry(name, entry.get("task"), schedule, columns, run_on_start)


def _way_of(key: Any) -> str:
    """Return what to write in place of a key that is not Celery's."""
    if key == "enabled":
        return PAUSE
    column = OF_DJANGO_CELERY_BEAT.get(key, key)
    if column in READERS:
        return f""": write {{"pgbeat": {{"{column}": …}}}} into the entry"""
    return did_you_mean(key, KEYS)


def entry_of_declaration(declaration: Declaration, app: Any) -> Entry:
    """Read a declaration of `@beat.periodic_task`; the app must be finalised.

    Raises:
        InvalidPeriodicTask: the decorated function is no task.
    """
    task = declaration.task_in(app)
    return Entry(declaration.name or task, task, declaration.schedule, declaration.columns, declaration.run_on_start)
