"""`group limit`: how many jobs of a group may be under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_pgbeat.cli.completion import group_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result, text
from celery_pgbeat.cli.target import Target
from celery_pgbeat.suggestions import did_you_mean

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat

NO_LIMIT = "none"


def _read_limit(_context: click.Context, _parameter: click.Parameter, value: str) -> int | None:
    if value == NO_LIMIT:
        return None
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor {NO_LIMIT!r}") from None


@click.command("limit", cls=ApiCommand)
@click.argument("name", shell_complete=group_names)
@click.argument("max_active", metavar="NUMBER|none", callback=_read_limit)
@as_json
def limit_group(name: str, max_active: int | None, as_json: bool) -> None:
    """Set how many jobs of a group may be under way at once, in the whole cluster; `none` for no limit.

    Other jobs wait and start in order of their scheduled time. A lower limit ends no job. If no periodic task names the
    group yet, stderr says so: `group remove` removes one with a misspelt name.
    """
    beat = Target.current().beat()
    group = beat.limit_group(name, max_active)
    warn_of_a_new_name(beat, name)
    if group.max_active is None:
        sentence = f"The group {name!r} has no limit."
    else:
        sentence = f"At most {group.max_active} jobs of the group {name!r} are under way at once."
    print_result(group, sentence, as_json)


def warn_of_a_new_name(beat: PgBeat, name: str) -> None:
    """Say that no periodic task names the group, and which group may have been meant."""
    others = {group.name: group.tasks for group in beat.groups()}
    if not others.pop(name, 0):
        hint = did_you_mean(name, [other for other, tasks in others.items() if tasks])
        click.echo(text(f"No periodic task names the group {name!r} yet{hint or '.'}"), err=True)
