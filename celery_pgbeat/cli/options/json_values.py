"""JSON on the command line, for columns that hold JSON."""

from __future__ import annotations

import json
from typing import Any

import click

from celery_pgbeat.columns import Column

JSON_KINDS = {list[Any]: "array", dict[str, Any]: "object"}


def json_value(column: Column, text: str, shown: str) -> Any:
    """Return the value of a column.

    Args:
        column: one of JSON.
        text: what was typed.
        shown: what an error calls it. Arguments may be those of a sensitive row.

    Raises:
        click.BadParameter: it is not JSON, or another kind of it.
    """
    wanted = JSON_KINDS[column.type]
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{shown} is not JSON: {error}") from None
    if not isinstance(read, list if wanted == "array" else dict):
        raise click.BadParameter(f"{shown} is not a JSON {wanted}")
    return read
