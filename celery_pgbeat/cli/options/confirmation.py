"""Asks for confirmation before an action that cannot be undone; only on a terminal."""

from __future__ import annotations

import sys

import click

with_yes = click.option("--yes", "-y", is_flag=True, help="Do not ask, not even on a terminal.")


def confirm(question: str, yes: bool) -> None:
    """Ask; if the answer is not yes, end the command with exit code 1."""
    if not yes and is_terminal():
        click.confirm(question, abort=True, err=True)


def is_terminal() -> bool:
    """Return whether stdin is a terminal, so that a person can answer."""
    return sys.stdin.isatty()
