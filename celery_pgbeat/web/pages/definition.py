"""The definition of a periodic task, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.columns import DECLARED, PUBLIC
from celery_pgbeat.errors import InvalidSchedule, MissingExtra
from celery_pgbeat.schedules import parse
from celery_pgbeat.schedules.durations import spoken
from celery_pgbeat.texts.redaction import ARGUMENTS

SENSITIVE = "sensitive: they are not shown"
ELSEWHERE = {
    "name",
    "task",
    "schedule",
    "timezone",
    "group_name",
    "after",
    "subject",
    "submitter",
    "sensitive",
    "managed_by",
}


def runs_in_words(row: Mapping[str, Any], zone: str) -> str | None:
    """Return when a periodic task runs, in words; None if it has no schedule, or one that cannot be read here."""
    if row["schedule"] is None:
        return None
    anchor = row["anchor"] or row["start_at"] or row["created_at"]
    try:
        return parse(
            row["schedule"], row["timezone"] or zone, name=row["name"], dst=row["dst"], anchor=anchor
        ).describe()
    except (InvalidSchedule, MissingExtra):
        return None


def call_in_words(found: Mapping[str, Any]) -> str:
    """Return arguments, which are JSON, as Python writes a call."""
    args = [json.dumps(value, ensure_ascii=False) for value in json.loads(found["args"])]
    named = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in json.loads(found["kwargs"]).items()]
    return f"({', '.join([*args, *named])})"


def settings_of(row: Mapping[str, Any]) -> Sequence[tuple[str, Any, str]]:
    """Return what a definition sets that is not at its default: the column, its value, and what it means."""
    found = []
    for name, column in DECLARED.items():
        value = row.get(name)
        if name in ELSEWHERE or name in ARGUMENTS or value is None or value == PUBLIC[name].initial:
            continue
        shown = column.choices.get(value, "") if isinstance(value, str) else ""
        found.append((name, _readable(value), shown or column.says))
    return found


def _readable(value: Any) -> Any:
    if isinstance(value, timedelta):
        return spoken(value) or "0s"
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return value if isinstance(value, datetime) else str(value)
