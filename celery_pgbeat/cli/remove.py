"""`remove`: remove periodic tasks."""

from __future__ import annotations

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.chosen import Chosen, choose, spoken, with_names
from celery_pgbeat.cli.options.confirmation import confirm, with_yes
from celery_pgbeat.cli.output.values import as_json, print_result


@click.command(cls=ApiCommand)
@with_names
@with_yes
@as_json
def remove(names: tuple[str, ...], every: bool, yes: bool, as_json: bool) -> None:
    """Remove periodic tasks. Messages already at the broker still run.

    NAME may be a pattern, see "Names and patterns" in docs/shell.md. At a terminal the command always asks.

    Exit codes: 0 removed; 1 a name is unknown, a pattern matches nothing, or the question was not answered with yes:
    nothing was removed.
    """
    chosen = choose(names, every)
    _warn_of_code(chosen)
    if chosen.is_by_pattern and len(chosen.rows) > 1:
        chosen.confirm("Remove", yes)
    elif chosen.rows:
        confirm(f"Remove {spoken(chosen.names)}?", yes)
    removed = Target.current().beat().unschedule_many(chosen.names, missing_ok=True)
    shown = spoken(removed) if removed or not chosen.rows else "nothing: another session has removed them already"
    print_result({"removed": removed}, f"Removed {shown}.", as_json)


def _warn_of_code(chosen: Chosen) -> None:
    """Say which rows a beat will add again."""
    declared = [row for row in chosen.rows if row["managed_by"].startswith("code:")]
    if not declared:
        return
    managers = ", ".join(sorted({row["managed_by"] for row in declared}))
    number = "is" if len(declared) == 1 else "are"
    again = "it" if len(declared) == 1 else "them"
    click.echo(
        f"{spoken([row['name'] for row in declared])} {number} declared in code ({managers}): a beat that starts adds "
        f"{again} again.",
        err=True,
    )
