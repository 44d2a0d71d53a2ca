"""The JSON Schema of a line that `export` prints and `import` reads, made from the table of columns. Pure.

An editor or another program can check names, types, ranges and the known values with it. `import --dry-run` checks the
texts of schedules, windows and zones too, because that needs a parser.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.api.shared_lines import COLUMNS
from celery_pgbeat.columns import DECLARED, Column
from celery_pgbeat.declare.columns import LARGEST_INT, LONGEST_NAME, MOST_TARGETS, MOST_UPSTREAM, READERS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAME = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
COUNT = {"type": "integer", "minimum": 1, "maximum": LARGEST_INT}
TEXTS = {"type": "array", "items": {"type": "string"}}
BY_TYPE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: COUNT,
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    timedelta: {"type": ["string", "number"], "examples": ["1h30m", 5400]},
    list[str]: TEXTS,
    list[Any]: {"type": "array"},
    dict[str, Any]: {"type": "object"},
}
SPECIAL: dict[str, dict[str, Any]] = {
    "name": NAME,
    "group_name": NAME,
    "priority": {"type": "integer", "minimum": 0, "maximum": 255},
    "blackout": {"type": ["string", "array"], "items": TEXTS["items"]},
    "target": {"type": ["string", "array"], "items": NAME, "minItems": 1, "maxItems": MOST_TARGETS},
    "after": {"type": ["string", "array"], "items": NAME, "maxItems": MOST_UPSTREAM},
}


def line_schema() -> dict[str, Any]:
    """Return the schema, in JSON Schema 2020-12.

    Example:
        >>> line_schema()["$defs"]["periodic task"]["required"]
        ['name']
    """
    defined = {
        "periodic task": _object(
            {name: _described(column) for name, column in DECLARED.items()},
            ["name"],
            "A periodic task. A column that is left out has its default. Only a task for people has no task.",
        )
        | {"anyOf": [{"required": ["task"]}, {"required": ["kind"], "properties": {"kind": {"const": "human"}}}]},
        "group": _object(
            {
                "group": NAME,
                "max_active": _or_null({**COUNT, "description": "How many of its jobs may be under way."}),
                "ordered": _or_null({"type": "boolean", "description": "One job at a time, in the scheduled order."}),
                "waits_for": _or_null({**TEXTS, "description": "The groups that must have nothing to do."}),
                "pause_on_failure": _or_null({"type": "boolean", "description": "Whether a failed job pauses it."}),
                "rate_limit": _or_null({"type": "string", "description": "Jobs per s, m or h.", "examples": ["100/m"]}),
            },
            ["group"],
            "A group with settings.",
        ),
        "window": _object(
            {
                "window": NAME,
                "windows": {**TEXTS, "description": "Each a schedule that opens the window and an ISO 8601 duration."},
                "timezone": _or_null({"type": "string", "description": DECLARED["timezone"].says}),
            },
            ["window", "windows"],
            "A named blackout window, to which periodic tasks refer as `window: name`.",
        ),
    }
    return {
        "$schema": DIALECT,
        "title": "A line of `celery-pgbeat export`",
        "oneOf": [{"$ref": f"#/$defs/{kind.replace(' ', '%20')}"} for kind in ("periodic task", *COLUMNS)],
        "$defs": defined,
    }


def _object(properties: dict[str, Any], required: list[str], description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _described(column: Column) -> dict[str, Any]:
    of_type = SPECIAL.get(column.name) or BY_TYPE[column.type]
    if column.choices:
        of_type = {"enum": list(column.choices)}
    described = {**of_type, "description": column.help}
    if column.default is not None and column.name in READERS:
        described["default"] = column.default
    return described if column.name == "name" else _or_null(described)


def _or_null(described: dict[str, Any]) -> dict[str, Any]:
    """Allow null, which is read as if the column were left out."""
    if "enum" in described:
        return {**described, "enum": [*described["enum"], None]}
    types = described["type"]
    return {**described, "type": [*([types] if isinstance(types, str) else types), "null"]}
