"""Checks of command lines and settings that a file of an example contains, by the parsers that will read them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
from celery.bin.celery import celery

from celery_pgbeat.cli import main, pgbeat
from celery_pgbeat.settings import SETTINGS

READ = {f"PGBEAT_{setting.name.upper()}": setting.metadata["read"] for setting in SETTINGS}
REDIRECTION = re.compile(r"\s\d?>+&?\s*\S+")
BETWEEN = re.compile(r"\s+(?:&&|&|\||;)(?:\s+|$)")  # two commands of one line


def check(words: Sequence[str]) -> None:
    """Check a command line of ours or of Celery's.

    Raises:
        click.UsageError: a command or an option is unknown, or the value of one of ours is wrong.
    """
    program, *rest = words
    if program == "celery-pgbeat":
        _check_ours(main, rest)
        return
    assert program == "celery", words
    context = click.Context(celery)
    _, left, _ = celery.make_parser(context).parse_args(list(rest))
    name, *rest = left
    if name == "pgbeat":
        _check_ours(pgbeat, rest)
        return
    command = celery.get_command(context, name)
    if command is None:
        raise click.UsageError(f"celery {name}: there is no such command")
    _, left, _ = command.make_parser(click.Context(command, parent=context)).parse_args(rest)
    if left:
        raise click.UsageError(f"celery {name}: what is {left}?")


def _check_ours(group: click.Command, words: Sequence[str]) -> None:
    """Parse the words, with the conversion of all values, and run nothing."""
    context, rest, command = click.Context(group), list(words), group
    while isinstance(command, click.Group):
        while rest and rest[0] in ("-A", "--app", "--url", "--schema"):
            del rest[:2]
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None
        context = click.Context(command, parent=context, info_name=name)
    command.make_context(str(context.info_name), rest, parent=context.parent)


def commands_of(block: str) -> Iterator[list[str]]:
    """Iterate over our and Celery's commands in lines of a shell, also those that another command starts."""
    for line in block.splitlines():
        for part in BETWEEN.split(re.split(r"\s#", line)[0].strip()):
            words = shlex.split(REDIRECTION.sub("", part))
            starts = [number for number, word in enumerate(words) if word in ("celery", "celery-pgbeat")]
            if starts:
                yield words[starts[0] :]


def settings_in(block: str) -> dict[str, str]:
    """Return what lines of a shell export."""
    lines = [line for line in block.splitlines() if line.startswith("export ")]
    words = [word for line in lines for word in shlex.split(line, comments=True)[1:]]
    return dict(word.split("=", 1) for word in words)


def check_settings(variables: Mapping[str, Any]) -> list[str]:
    """Read our settings among environment variables; return their names.

    Raises:
        InvalidSetting: a value is wrong.
        KeyError: there is no such setting.
    """
    ours = {name: value for name, value in variables.items() if name.startswith("PGBEAT_")}
    for name, value in ours.items():
        assert isinstance(value, str), f"{name}: {value!r} is no text"
        READ[name](name.lower(), value)
    return sorted(ours)
