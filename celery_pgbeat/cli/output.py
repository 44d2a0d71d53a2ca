"""Prints tables for people and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import click

from celery_pgbeat.redaction import ARGUMENTS, MASK
from celery_pgbeat.safe_text import json_lines, one_line

WIDEST = 48  # characters of a cell; `show` and --json cut nothing
GAP = "  "

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


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], colours: dict[str, str] | None = None) -> None:
    """Print a table. On a terminal a cell whose first word is in `colours` is coloured. The last column is not cut."""
    cut = [[*(_cut(cell) for cell in row[:-1]), row[-1]] for row in rows]
    widths = [max(len(row[column]) for row in [list(headings), *cut]) for column in range(len(headings))]
    click.echo(_line([click.style(heading, bold=True) for heading in headings], headings, widths))
    for row in cut:
        chosen = [(colours or {}).get(cell.partition(" ")[0]) for cell in row]
        styled = [click.style(cell, fg=colour) if colour else cell for cell, colour in zip(row, chosen, strict=True)]
        click.echo(_line(styled, row, widths))


def print_columns(columns: Mapping[str, Sequence[str]]) -> None:
    """Print a table, given its columns."""
    print_table(list(columns), list(zip(*columns.values(), strict=True)))


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one pair a line."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{click.style(name.ljust(width), bold=True)}{GAP}{value}")


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


def instant(value: datetime | None) -> str:
    """Return an instant as text, in UTC, to the second."""
    return "-" if value is None else f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S}Z"


def number(count: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def text(value: Any) -> str:
    """Return the value of any column as text."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return instant(value)
    shown = json.dumps(value, default=_plain, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
    return one_line(shown)


def _cut(cell: str) -> str:
    return cell if len(cell) <= WIDEST else f"{cell[: WIDEST - 1]}…"


def _line(styled: Sequence[str], plain: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - len(bare)) for cell, bare, width in zip(styled, plain, widths, strict=True)]
    return GAP.join(padded).rstrip()


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value):
        return row_as_dict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
