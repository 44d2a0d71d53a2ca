"""`remove`: forget periodic tasks."""

from __future__ import annotations

import click

from celery_pgbeat.cli.confirmation import confirm, with_yes
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@with_yes
@as_json
def remove(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove periodic tasks: all that are named or, if one is unknown, none. Messages already at the broker still run.

    Exit codes: 0 removed; 1 a name is unknown, or somebody said no.
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
    if as_json:
        print_json({"removed": removed})
    else:
        click.echo(f"Removed {', '.join(map(repr, removed)) or 'nothing: somebody else was faster'}.")
