"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from celery_pgbeat.cli.command_line.completion import group_names, task_names
from celery_pgbeat.texts.name_patterns import like


def _read_pattern(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else like(value)


with_like = click.option(
    "--like",
    metavar="PATTERN",
    callback=_read_pattern,
    help="Only names like this: * stands for any text, ? for any character (in a pattern without them, % and _).",
)
with_managed_by = click.option(
    "--managed-by", metavar="MANAGER", help="Only rows of this manager, such as sql, api or code:shop."
)
with_task = click.option("--task", metavar="NAME", help="Only those of this Celery task.", shell_complete=task_names)
with_queue = click.option("--queue", metavar="NAME", help="Only those for this queue.")
with_group_name_of_jobs = click.option(
    "--group-name",
    metavar="GROUP",
    help="Only jobs made while their task was in this group.",
    shell_complete=group_names,
)
with_group_name = click.option(
    "--group-name", metavar="GROUP", help="Only periodic tasks of this group.", shell_complete=group_names
)


def with_limit(most: int) -> Callable[..., Any]:
    """Give a command the option --limit."""
    return click.option(
        "--limit", type=click.IntRange(min=1), default=most, show_default=True, help="How many to show at most."
    )
