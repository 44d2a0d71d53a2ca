"""`limit-group`: how many jobs of a group may be under way."""

from __future__ import annotations

import click

from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
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
    """Set how many jobs of a group may be under way at once, in the whole cluster; `none` for no limit.

    Other jobs wait and start in order of their scheduled time. A lower limit ends no job.
    """
    group = Target.current().beat().limit_group(name, max_active)
    if group.max_active is None:
        sentence = f"The group {name!r} has no limit."
    else:
        sentence = f"At most {group.max_active} jobs of the group {name!r} are under way at once."
    print_result(group, sentence, as_json)
