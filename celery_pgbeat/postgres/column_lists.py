"""The column lists of statements and definitions, made from the table of columns.

A text has them as tokens, so that a column is one line in `celery_pgbeat/columns.py` and none here:

    {definition}             task, args, ...: what a declaration decides. Without name, timezone and managed_by, which
                             have rules of their own: a statement that wants them names them.
    {given.definition}       given.task, given.args, ...; any prefix, and any of the lists
    {definition = excluded}  task = excluded.task, args = excluded.args, ...; likewise
    {times}, {job_settings}  what decides the times, and what decides the jobs
    {written}                what the trigger of the row watches
    {insert_by_author}, {update_by_author}, {select_by_reader}
                             the columns in the grants of the roles
    {task_columns}           what callers see, the durations as microseconds (see `durations.py`). Not `*`: that would
                             send intervals, whose text changes with a setting, and columns that no caller knows.
    {open_columns}           likewise, without those that the role reader may not read
    {parameters}             those of the function schedule() between its schedule and managed_by, with defaults
    {parameter_names}        the names of all of its parameters, as texts
    {recorded}               what the table `change` records of a row
    {recorded_without_effect} those of them that change no revision; with _as_texts, their names as texts
    {recorded_columns of old} an expression for those that the role reader may read, as a JSON object
    {changed_columns of old} likewise for those that differ in `old` and `new`
    {set_columns of added}   likewise for those that are not at their default
    {changed}                the names of those that differ, NULL for the others
    {defaults}               the columns of a declaration that are not NULL by default, as a JSON object
    {duration_columns}       the names of its durations, as texts
    {column_checks}          why a column is wrong, by its type, its bounds and the values that are allowed
    {free_texts}             the texts without effect, where they differ from `stored`, as rows of a VALUES list
    {short_texts}            a call of not_a_short_text() for each of them
    {column_comments}        a `comment on column` for each column
    {group}                  the columns of a group that callers see
    {shown}                  the columns of the view `task`
    {shown_comments}         a `comment on column` for each of those
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cache
from textwrap import fill

from celery_pgbeat.columns import DECLARED, INTERNAL, PUBLIC, RECORDED, Column
from celery_pgbeat.postgres.durations import UNIT

WIDTH = 110  # characters of a line
ALL = (*PUBLIC.values(), *INTERNAL)
OWN_RULES = ("name", "timezone", "managed_by")
PARAMETERS = [name for name in DECLARED if name not in ("name", "task", "schedule", "managed_by")]
OF_THE_CALL = ("keep_next_run", "take_over")  # parameters of the function schedule() that are no columns
RECORDED_OPENLY = [PUBLIC[name] for name in RECORDED if not PUBLIC[name].hidden]
RECORDED_OF = re.compile(r"\{(recorded|changed|set)_columns of (\w+)\}")
FREE_TEXTS = [column for column in DECLARED.values() if column.is_free_text]

LISTS: dict[str, list[str]] = {
    "definition": [name for name in DECLARED if name not in OWN_RULES],
    "times": [column.name for column in ALL if column.decides == "times"],
    "job_settings": [column.name for column in ALL if column.decides == "job"],
    "written": [column.name for column in ALL if column.decides != "nothing" or column.author != "nothing"],
    "insert_by_author": [column.name for column in ALL if column.author == "insert and update"],
    "update_by_author": [column.name for column in ALL if column.author in ("insert and update", "update")],
    "select_by_reader": [column.name for column in ALL if not column.hidden],
    "recorded": list(RECORDED),
    "recorded_without_effect": [name for name in RECORDED if PUBLIC[name].decides == "nothing"],
    "group": [
        "name",
        "max_active",
        "ordered",
        "waits_for",
        "pause_on_failure",
        "rate_limit",
        "state",
        "paused",
        "pause_reason",
    ],
    "shown": [
        *("name", "schedule", "timezone", "next_run_at", "last_run_at", "enabled", "pause_reason", "paused_until"),
        *("problem", "task", "queue", "group_name", "overlap", "catchup", "managed_by"),
    ],
}
LIST = re.compile(rf"\{{(?:(\w+)\.)?({'|'.join(LISTS)})(?: = (\w+))?\}}")


def with_columns(text: str) -> str:
    """Return the text with its tokens replaced.

    Example:
        >>> with_columns("select {new.definition}")[:35]
        'select new.task, new.args, new.kwar'
    """
    text = LIST.sub(lambda found: _listed(*found.groups()), text)
    text = RECORDED_OF.sub(lambda found: OBJECTS[found[1]](found[2]), text)
    for token, columns in _tokens().items():
        text = text.replace(token, columns)
    return text


def _listed(prefix: str | None, name: str, source: str | None) -> str:
    names = LISTS[name]
    if source:
        return _joined(f"{column} = {source}.{column}" for column in names)
    return _joined(f"{prefix}.{column}" if prefix else column for column in names)


@cache
def _tokens() -> dict[str, str]:
    texts = [f"'{column.name}', nullif(task.{column.name}, stored.{column.name})" for column in FREE_TEXTS]
    return {
        "{task_columns}": _joined(_read(column) for column in PUBLIC.values()),
        "{open_columns}": _joined(_read(column) for column in PUBLIC.values() if not column.hidden),
        "{parameters}": ",\n    ".join(_parameter(DECLARED[name]) for name in PARAMETERS),
        "{parameter_names}": _texts(["name", "task", "schedule", *PARAMETERS, "managed_by", *OF_THE_CALL]),
        "{column_checks}": ",\n        ".join(filter(None, map(_check, DECLARED.values()))),
        "{free_texts}": ", ".join(f"({arguments})" for arguments in texts),
        "{short_texts}": ",\n        ".join(f"{{schema}}.not_a_short_text({arguments})" for arguments in texts),
        "{defaults}": _defaults(),
        "{recorded_without_effect_as_texts}": _texts(LISTS["recorded_without_effect"]),
        "{changed}": _joined(
            f"case when old.{name} is distinct from new.{name} then '{name}' end" for name in RECORDED
        ),
        "{duration_columns}": _texts([column.name for column in DECLARED.values() if column.type is timedelta]),
        "{column_comments}": "\n".join(_comment("periodic_task", column) for column in ALL),
        "{shown_comments}": "\n".join(_comment("task", PUBLIC[name]) for name in LISTS["shown"]),
    }


def _joined(items: Iterable[str]) -> str:
    return fill(", ".join(items), WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _texts(values: Iterable[str]) -> str:
    return _joined(f"'{value}'" for value in values)


def _read(column: Column) -> str:
    is_duration = column.sql_type == "interval"
    return f"{{schema}}.microseconds({column.name}) as {column.name}{UNIT}" if is_duration else column.name


def _json_object(of: str) -> str:
    """Return an expression for a JSON object of all columns; Postgres takes at most 100 arguments at a time."""
    pairs = [f"'{column.name}', {_recorded(f'{of}.{column.name}', column)}" for column in RECORDED_OPENLY]
    parts = (pairs[first : first + 40] for first in range(0, len(pairs), 40))
    return "\n        || ".join(f"jsonb_build_object({_joined(part)})" for part in parts)


def _changed_columns(of: str) -> str:
    return _each_if(of, lambda column: f"old.{column.name} is distinct from new.{column.name}")


def _set_columns(of: str) -> str:
    return _each_if(of, lambda column: f"{of}.{column.name} is distinct from {_initial(column)}")


def _each_if(of: str, condition: Callable[[Column], str]) -> str:
    """Return an expression for a JSON object of the columns that fulfil a condition."""
    objects = (
        f"case when {condition(column)}\n"
        f"        then jsonb_build_object('{column.name}', {_recorded(f'{of}.{column.name}', column)}) else '{{}}' end"
        for column in RECORDED_OPENLY
    )
    return "\n        || ".join(objects)


OBJECTS: dict[str, Callable[[str], str]] = {
    "recorded": _json_object,
    "changed": _changed_columns,
    "set": _set_columns,
}


def _recorded(value: str, column: Column) -> str:
    """Return an expression for a column in JSON that depends on no setting of the session."""
    if column.type is timedelta:
        return f"{{schema}}.in_seconds({value})"
    return f"{{schema}}.in_iso({value})" if column.type is datetime else value


def _defaults() -> str:
    known = {column.name: column.initial for column in DECLARED.values() if column.initial is not None}
    return _joined([json.dumps(known).replace('"[]"', "[]").replace('"{}"', "{}")])


def _check(column: Column) -> str:
    """Return an expression for why the column is wrong, NULL if it is not; nothing for texts and JSON."""
    name = column.name
    if column.choices:
        return f"{{schema}}.not_one_of('{name}', task.{name}, {_texts(column.choices)})"
    if column.type is timedelta:
        may_be_zero = str(column.may_be_zero).lower()
        return f"{{schema}}.not_a_duration('{name}', task.{name}, {may_be_zero}, {column.longest.days})"
    if column.type is datetime:
        return f"{{schema}}.not_an_instant('{name}', task.{name})"
    if column.type is bool:
        return f"case when task.{name} is null then '{name} is null, not true or false' end"
    if column.type is int and name != "priority":
        return f"case when task.{name} < 1 then format('{name} is %s, not at least 1', task.{name}) end"
    return ""


def _parameter(column: Column) -> str:
    return f"{column.name} {column.sql_type} default {_initial(column)}"


def _initial(column: Column) -> str:
    initial = column.initial
    return "null" if initial is None else str(initial).lower() if isinstance(initial, bool) else f"'{initial}'"


def _comment(relation: str, column: Column) -> str:
    text = column.comment.replace("'", "''")
    return f"comment on column {{schema}}.{relation}.{column.name} is\n    '{text}';"
