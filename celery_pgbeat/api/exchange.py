"""Definitions outside of the database: records, lines of a file, and the differences between two records.

A record has every column of a definition as a JSON value: instants in ISO 8601, durations in seconds. A line is the
same for people and for git: without the columns at their default, and with durations such as `1h30m`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.columns import DECLARED
from celery_pgbeat.declare.columns import read_columns
from celery_pgbeat.declare.definition import record_of
from celery_pgbeat.declare.duration import read_duration
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.schedules.durations import spoken
from celery_pgbeat.texts.plain_json import Unreadable
from celery_pgbeat.texts.redaction import ARGUMENTS, MASK
from celery_pgbeat.texts.safe_text import json_lines

Record = dict[str, Any]
Change = tuple[Any, Any]  # from, to

# A record with every column at its default.
EMPTY: Record = {**read_columns({}), "args": [], "kwargs": {}, "options": {}}
INSTANTS = frozenset(name for name, column in DECLARED.items() if column.type is datetime)
DURATIONS = frozenset(name for name, column in DECLARED.items() if column.type is timedelta)


def line_of(row: Mapping[str, Any]) -> str:
    """Return the definition in a row of `pgbeat.periodic_task` as one line of a file.

    Raises:
        InvalidPeriodicTask: its JSON cannot be read; names the row and the column.
    """
    record = record_of(row)
    for column, value in record.items():
        if isinstance(value, Unreadable):
            raise InvalidPeriodicTask(f"{row['name']!r} is not exported: {column} is {value}; fix or remove the row")
    return json_lines(
        {
            column: spoken_value(column, value)
            for column, value in record.items()
            if value is not None and (column not in EMPTY or value != EMPTY[column])
        }
    )


def spoken_value(column: str, value: Any) -> Any:
    """Return a record's value as people write it: a duration as `1h30m`, if that has exactly the same value."""
    if column not in DURATIONS or not value:
        return value
    text = spoken(timedelta(seconds=value))
    try:
        return text if read_duration(column, text).total_seconds() == value else value
    except InvalidPeriodicTask:
        return value


def read_value(column: str, value: Any) -> Any:
    """Return a record's value as Python has it in a row: an instant, a duration, or the value itself."""
    if value is None or column not in INSTANTS | DURATIONS:
        return value
    return datetime.fromisoformat(value) if column in INSTANTS else timedelta(seconds=value)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Change]:
    """Return the differences between two records, by column; arguments are masked if one of them is sensitive."""
    changes = {column: (old.get(column), new.get(column)) for column in DECLARED if old.get(column) != new.get(column)}
    if old.get("sensitive") or new.get("sensitive"):
        changes.update(dict.fromkeys(ARGUMENTS & changes.keys(), (MASK, MASK)))
    return changes
