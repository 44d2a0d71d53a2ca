"""The options that say which app and database a command is about: before the command, after it, or in both places.

The one nearer to the end counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from celery_pgbeat.cli.command_line.target import Target


def target_options(*, hidden: bool = False) -> list[click.Parameter]:
    """Return the options; hidden for a command, whose help would repeat them.

    They are read before other options: the app's zone is needed to read some of these.
    """
    always: dict[str, Any] = {"is_eager": True, "expose_value": False, "hidden": hidden}
    return [
        click.Option(
            ("-A", "--app"),
            metavar="MODULE",
            help="The Celery app, as for `celery`; most commands need none.",
            callback=_keep_as("app_name"),
            **always,
        ),
        click.Option(
            ("--url",),
            metavar="URL",
            help="The database; default pgbeat_url of the app, else PGBEAT_URL.",
            callback=_keep_as("url"),
            **always,
        ),
        click.Option(
            ("--schema",),
            metavar="NAME",
            help="The database schema; default pgbeat.",
            callback=_keep_as("schema"),
            **always,
        ),
    ]


def _keep_as(attribute: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def keep(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            setattr(Target.of(ctx), attribute, value)

    return keep
