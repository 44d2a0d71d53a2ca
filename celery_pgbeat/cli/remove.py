"""`remove`: remove periodic tasks."""

from __future__ import annotations

import click

from celery_pgbeat.cli.confirmation import confirm, with_yes
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@with_yes
@as_json
def remove(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove all named periodic tasks; if one name is unknown, none. Messages already at the broker still run.

    Exit codes: 0 removed; 1 a name is unknown, or you answered no.
    """
    beat = Target.current().beat()
    rows = [beat.get(name) for name in dict.fromkeys(names)]
    shown = ", ".join(repr(row.name) for row in rows)
    for row in rows:
        if row.managed_by.startswith("code:"):
            click.echo(
                f"{row.name!r} is declared in code ({row.managed_by}): a beat that starts adds it again.", err=True
            )
    confirm(f"Remove {shown}?", yes)
    with Target.current().operators().transaction() as connection:
        removed = [row.name for row in rows if beat.unschedule(row.name, connection=connection)]
    shown = ", ".join(map(repr, removed)) or "nothing: another session has removed them already"
    print_result({"removed": removed}, f"Removed {shown}.", as_json)
