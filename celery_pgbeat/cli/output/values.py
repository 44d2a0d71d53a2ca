"""Prints values: names and values for people, JSON for programs. Tables are in `table.py`, times in `times.py`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import IO, Any

import click

from celery_pgbeat.cli.output.terminal import EMPTY, GAP, terminal_width, wrapped
from celery_pgbeat.cli.output.times import instant
from celery_pgbeat.texts.redaction import ARGUMENTS, MASK
from celery_pgbeat.texts.safe_text import json_lines, one_line

COMMAND = re.compile(r"`[^`]*`")
NO_BREAK = "\xa0"  # where a line is not broken

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def print_json(value: Any) -> None:
    """Print rows (as `row_as_dict`) or plain values: instants in ISO 8601, durations in seconds."""
    click.echo(json_lines(value, default=_plain, indent=2))


def json_line(value: Any) -> str:
    """Return a row or plain values as JSON on one line."""
    return json_lines(value, default=_plain)


def say(message: str, *, label: str = "", colour: str | None = None, indent: int = 0, err: bool = False) -> None:
    """Print a sentence; on a terminal as lines that fit. A command between backticks is not broken.

    Args:
        message: the sentence; parts of it may come from a row.
        label: what it begins with, before a colon.
        colour: of the label.
        indent: how many spaces stand before it.
        err: print to stderr.
    """
    begin = f"{label}: " if label else ""
    lines = lines_of(begin + text(message), sys.stderr if err else sys.stdout, indent)
    shown = "\n".join(" " * indent + line for line in lines)
    click.echo(shown.replace(label, click.style(label, fg=colour), 1) if label else shown, err=err)


def lines_of(sentence: str, stream: IO[Any], indent: int = 0) -> list[str]:
    """Return a sentence as lines that fit a terminal; one line if the stream is none."""
    width = terminal_width(stream)
    if width is None:
        return [sentence]
    together = COMMAND.sub(lambda command: command[0].replace(" ", NO_BREAK), sentence)
    return [line.replace(NO_BREAK, " ") for line in wrapped(together, width - indent)]


def ended(sentence: str) -> str:
    """Return a sentence with its full stop; a question has its own mark.

    Example:
        >>> ended("Nothing differs"), ended("Did you mean 'overlap'?")
        ('Nothing differs.', "Did you mean 'overlap'?")
    """
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def print_result(value: Any, sentence: str, as_json: bool) -> None:
    """Print what a command did: the value as JSON, or the sentence."""
    if as_json:
        print_json(value)
    else:
        say(sentence)


def say_if_more(
    rows: Sequence[Any], limit: int, following: Callable[[Any], str] = lambda _last: "give a higher --limit"
) -> None:
    """Print to stderr how to see the rows after the last one, if there are as many as may be shown."""
    if len(rows) == limit:
        click.echo(f"There may be more: {following(rows[-1])}", err=True)


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
    if isinstance(value, timedelta):
        from celery_pgbeat.schedules.durations import spoken

        return spoken(value) or "0s"
    shown = json.dumps(value, default=_plain, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
    return one_line(shown)


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value):
        return row_as_dict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
