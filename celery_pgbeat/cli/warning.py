"""A warning on stderr, beside what a command has done all the same."""

from __future__ import annotations

import click

from celery_pgbeat.cli.output import text


def warn(message: str) -> None:
    """Print a warning; parts of the message may come from a row."""
    click.echo(f"{click.style('Warning', fg='yellow')}: {text(message)}", err=True)
