"""A question before something that cannot be taken back; only a person at a terminal is asked."""

from __future__ import annotations

import sys

import click

with_yes = click.option("--yes", "-y", is_flag=True, help="Do not ask, not even on a terminal.")


def confirm(question: str, yes: bool) -> None:
    """Go on if the answer is yes, else end the command with exit code 1."""
    if not yes and is_terminal():
        click.confirm(question, abort=True, err=True)


def is_terminal() -> bool:
    """Tell whether somebody can answer."""
    return sys.stdin.isatty()
