"""The periodic tasks that a command line means: names, patterns, or all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.confirmation import confirm, is_terminal
from celery_pgbeat.texts.name_patterns import is_pattern, like, plain

SHOWN = 5  # names in a sentence; of more rows only the number

Command = Callable[..., Any]


def with_names(command: Command) -> Command:
    """Give a command the arguments NAME... and the option --all."""
    for decorate in (
        click.option("--all", "every", is_flag=True, help="All periodic tasks."),
        click.argument("names", metavar="[NAME...]", nargs=-1, shell_complete=periodic_task_names),
    ):
        command = decorate(command)
    return command


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen.

    Attributes:
        rows: their names, managers and states, in name order.
        left_out: how many of those that a pattern or --all matched need nothing done.
        is_by_pattern: whether a pattern or --all chose them.
    """

    rows: Sequence[Any]
    left_out: int
    is_by_pattern: bool

    @property
    def names(self) -> list[str]:
        """The names."""
        return [row["name"] for row in self.rows]

    def confirm(self, verb: str, yes: bool) -> None:
        """Ask before a pattern or --all does something to more than one row; without a terminal, fail."""
        if not self.is_by_pattern or len(self.rows) < 2 or yes:
            return
        if not is_terminal():
            raise Failure(f"This would {verb.lower()} {spoken(self.names)}: add --yes")
        confirm(f"{verb} {spoken(self.names)}?", yes)


def one_name(names: Sequence[str], every: bool) -> str | None:
    """Return the name if the command line means just one periodic task by its name; else None."""
    return plain(names[0]) if len(names) == 1 and not every and not is_pattern(names[0]) else None


def choose(
    names: Sequence[str], every: bool, wanted: Callable[[Any], bool] = lambda _row: True, needless: str = ""
) -> Chosen:
    """Find the periodic tasks that a command line means.

    Args:
        names: names and patterns.
        every: whether --all was given.
        wanted: whether a row that a pattern or --all matches is meant; a row that is named is always meant.
        needless: the state of the other rows, for an error.

    Raises:
        click.UsageError: neither a name nor --all was given, or both.
        UnknownPeriodicTask: a name is unknown.
        Failure: a pattern matches nothing.
    """
    if every == bool(names):
        raise click.UsageError("Give names or --all, not both." if names else "Give a NAME, a pattern, or --all.")
    plain_names = [plain(name) for name in names if not is_pattern(name)]
    found = {row["name"]: row for row in _named(plain_names)}
    patterns = [name for name in names if is_pattern(name)]
    matched = {row["name"]: row for pattern in patterns or ["*"] * every for row in _matching(pattern, every)}
    meant = {name: row for name, row in matched.items() if wanted(row)} | found
    left_out = len(matched.keys() - meant.keys())
    if not meant and left_out and not every:
        raise Failure(f"Each periodic task that matches {', '.join(map(repr, patterns))} is {needless}")
    rows = [meant[name] for name in sorted(meant)]
    return Chosen(rows, left_out, bool(patterns) or every)


def spoken(names: Sequence[str]) -> str:
    """Return the names of a few rows, or the number of many."""
    if len(names) > SHOWN:
        return f"{len(names):,} periodic tasks"
    return ", ".join(map(repr, names)) or "nothing"


def left_alone(chosen: Chosen, state: str) -> str:
    """Return a sentence about the rows that matched and needed nothing; empty if there are none."""
    verb = "was" if chosen.left_out == 1 else "were"
    return f" {chosen.left_out:,} that matched {verb} {state}." if chosen.left_out else ""


def _named(names: list[str]) -> list[Any]:
    from celery_pgbeat.api.many import refuse_unknown

    operators = Target.current().operators()
    rows = operators.names_meant(names)
    found = {row["name"] for row in rows}
    refuse_unknown([name for name in names if name not in found], operators.similar_name)
    return rows


def _matching(pattern: str, every: bool) -> list[Any]:
    rows = Target.current().operators().names_meant([], [like(pattern)])
    if not rows and not every:
        raise Failure(f"No periodic task matches {pattern!r}")
    return rows
