"""Prints the differences between two definitions: + new, - removed, ~ changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from celery_pgbeat.cli.output.values import text

SIGNS = {"added": ("+", "green"), "changed": ("~", "yellow"), "removed": ("-", "red")}


def print_difference(name: str, kind: str, columns: Mapping[str, tuple[Any, Any]]) -> None:
    """Print the name of a row that differs, and below it each column with its old and new value."""
    from celery_pgbeat.api.exchange import spoken_value

    sign, colour = SIGNS[kind]
    click.echo(click.style(f"{sign} {text(name)}", fg=colour))
    for column, (old, new) in columns.items():
        before, after = (_value(spoken_value(column, value)) for value in (old, new))
        click.echo(f"    {column}: {after if kind == 'added' else f'{before} -> {after}'}")


def columns_as_dict(columns: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Return changes as JSON has them."""
    return {column: {"from": old, "to": new} for column, (old, new) in columns.items()}


def _value(value: Any) -> str:
    return "nothing" if value is None else text(value)
