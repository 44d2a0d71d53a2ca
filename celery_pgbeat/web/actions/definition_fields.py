"""The fields of a form for a definition: one for each column, what it shows of a row, and what was typed into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, get_origin

from celery_pgbeat.columns import Column
from celery_pgbeat.schedules.durations import spoken
from celery_pgbeat.web.actions.action import Field
from celery_pgbeat.web.actions.typed import typed_instant, typed_json, typed_number
from celery_pgbeat.web.definition_form import EDITABLE, FIRST, REPLACES, REPLACING, SECTIONS
from celery_pgbeat.web.form import Form

LABELS = {"task": "Celery task", "timezone": "Time zone", "group_name": "Group", "dst": "Clock changes"}
HINTS = {
    "schedule": "such as 0 3 * * *, every 5m, Mon..Fri 09:00, @daily; empty: it has no times of its own",
    "timezone": "such as Europe/Berlin; empty: that of the app, from the next beat on",
}
NEW = "Replace the arguments"  # the section of a sensitive row
YES_OR_NO = {"false": "", "true": "hides their arguments from now on; only code or SQL can undo this"}


def _field(name: str, section: str = "") -> Field:
    column = EDITABLE[name]
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    looked_at = column.decides == "times"
    if column.type is bool:
        return Field(name, label, "choice", column.says, YES_OR_NO, "false", section=section)
    if column.choices:
        initial = str(column.default)
        meant = column.choices
        return Field(name, label, "choice", column.says, meant, initial, section=section, is_looked_at=looked_at)
    hint = HINTS.get(name, column.says + (" One on each line." if column.type == list[str] else ""))
    described = partial(Field, name, label, hint=hint, section=section, is_looked_at=looked_at)
    if column.type in (list[str], list[Any], dict[str, Any]):
        return described("area")
    return described("text", is_in_zone=column.type is datetime)


FIELDS: Sequence[Field] = (
    *(_field(name) for name in FIRST if name != "name"),
    *(_field(name, title) for title, names in SECTIONS for name in names),
    *(Field(name, f"New {column}", "area", REPLACES.format(column), section=NEW) for name, column in REPLACING.items()),
)
NAMES = frozenset(field.name for field in FIELDS)


def shown(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what the fields have at first: the columns of a row that it has, as texts."""
    return {name: _text(EDITABLE[name], row[name]) for name in NAMES if name in row}


def replaced(form: Form) -> dict[str, Any]:
    """Return the new arguments of a sensitive row; those that were not typed stay.

    Raises:
        Wrong: they are not JSON of their kind.
    """
    kinds = {name: get_origin(EDITABLE[column].type) for name, column in REPLACING.items()}
    typed = {REPLACING[name]: typed_json(form, name, kind) for name, kind in kinds.items()}
    return {column: value for column, value in typed.items() if value is not None}


def _text(column: Column, value: Any) -> str:
    if value is None or (column.type in (list[Any], dict[str, Any]) and not value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return spoken(value) or "0s"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if column.type == list[str]:
        return "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed_changes(form: Form, row: Mapping[str, Any], now: datetime, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns of a row that a form changes, with what was typed, as the Python API takes it.

    Args:
        form: as it was sent. A field that it does not have changes nothing.
        row: as it is now.
        now: from which a duration such as `2d` counts.
        without: columns that are not changed here.

    Raises:
        Wrong: a value that its column cannot have; the API checks the rest.
    """
    before = shown(row)
    names = [name for name in EDITABLE if name in NAMES and name in before and name not in without and form.has(name)]
    return {
        name: _typed(EDITABLE[name], form, now)
        for name in names
        if form.text(name) != (before[name].replace("\r\n", "\n").strip() or None)
    }


def _typed(column: Column, form: Form, now: datetime) -> Any:
    name = column.name
    if column.type is datetime:
        return typed_instant(form, name, now)
    return READERS.get(column.type, Form.text)(form, name)


def _lines(form: Form, name: str) -> list[str] | None:
    return [line.strip() for line in (form.text(name) or "").splitlines() if line.strip()] or None


READERS: Mapping[Any, Callable[[Form, str], Any]] = {
    int: typed_number,
    bool: lambda form, name: form.text(name) == "true",
    list[str]: _lines,
    list[Any]: lambda form, name: typed_json(form, name, list),
    dict[str, Any]: lambda form, name: typed_json(form, name, dict),
}
