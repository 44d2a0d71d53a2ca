"""A warning on stderr, beside what a command has done all the same."""

from __future__ import annotations

from celery_pgbeat.cli.output import say
from celery_pgbeat.cli.target import Target


def warn(message: str) -> None:
    """Print a warning; parts of the message may come from a row."""
    say(Target.current().as_typed(message), label="Warning", colour="yellow", err=True)
