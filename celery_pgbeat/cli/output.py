"""Prints values: names and values for people, JSON for programs. Tables are in `table.py`, times in `times.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

import click

from celery_pgbeat.cli.table import EMPTY, GAP, terminal_width, wrapped
from celery_pgbeat.cli.times import instant
from celery_pgbeat.redaction import ARGUMENTS, MASK
from celery_pgbeat.safe_text import json_lines, one_line

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def print_json(value: Any) -> None:
    """Print rows (as `row_as_dict`) or plain values: instants in ISO 8601, spans in seconds."""
    click.echo(json_lines(value, default=_plain, indent=2))


def json_line(value: Any) -> str:
    """Return a row or plain values as JSON on one line."""
    return json_lines(value, default=_plain)


def print_result(value: Any, sentence: str, as_json: bool) -> None:
    """Print what a command did: the value as JSON, or the sentence."""
    if as_json:
        print_json(value)
    else:
        click.echo(sentence)


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one pair a line; on a terminal a long value goes on below its beginning."""
    indent = max(len(name) for name, _ in pairs) + len(GAP)
    width = terminal_width()
    for name, value in pairs:
        lines = [value] if width is None else wrapped(value, width - indent)
        click.echo(click.style(name, bold=True) + " " * (indent - len(name)) + f"\n{' ' * indent}".join(lines))


def row_as_dict(row: Any, *, reveal: bool = False) -> dict[str, Any]:
    """Return a dataclass, such as a PeriodicTask or a Job, as a dict; arguments as the JSON that is stored.

    The arguments of a sensitive row are masked, unless `reveal` is set.
    """
    from celery_pgbeat.declare.call import json_text

    hidden = ARGUMENTS if getattr(row, "sensitive", False) and not reveal else frozenset()
    return {
        field.name: json.loads(json_text(value, field.name)) if isinstance(value, (list, dict)) else value
        for field in fields(row)
        for value in [MASK if field.name in hidden else getattr(row, field.name)]
    }


def number(count: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def text(value: Any) -> str:
    """Return the value of any column as text."""
    if value is None:
        return EMPTY
    if isinstance(value, datetime):
        return instant(value)
    shown = json.dumps(value, default=_plain, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
    return one_line(shown)


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value):
        return row_as_dict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
