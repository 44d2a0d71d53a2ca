"""A warning on stderr, beside what a command has done all the same."""

from __future__ import annotations

from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.values import say


def warn(message: str) -> None:
    """Print a warning; parts of the message may come from a row."""
    say(Target.current().as_typed(message), label="Warning", colour="yellow", err=True)
