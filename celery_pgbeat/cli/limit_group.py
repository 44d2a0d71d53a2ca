"""`limit-group`: how many jobs of a group may be under way."""

from __future__ import annotations

from dataclasses import asdict

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json
from celery_pgbeat.cli.target import Target

NO_LIMIT = "none"


def _read_limit(_context: click.Context, _parameter: click.Parameter, value: str) -> int | None:
    if value == NO_LIMIT:
        return None
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor {NO_LIMIT!r}") from None


@click.command("limit-group", cls=ApiCommand)
@click.argument("name")
@click.argument("max_active", metavar="NUMBER|none", callback=_read_limit)
@as_json
def limit_group(name: str, max_active: int | None, as_json: bool) -> None:
    """Set how many jobs of a group may be under way at a time, in the whole cluster; `none` for no limit.

    The others wait and start in the order of their scheduled times. A lower limit ends no job.
    """
    group = Target.current().beat().limit_group(name, max_active)
    if as_json:
        print_json(asdict(group))
    elif group.max_active is None:
        click.echo(f"The group {name!r} has no limit.")
    else:
        click.echo(f"At most {group.max_active} jobs of the group {name!r} are under way at a time.")
