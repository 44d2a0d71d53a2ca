"""`revert`: put the definition of a periodic task back."""

from __future__ import annotations

import click

from celery_pgbeat.cli.command_line.completion import periodic_task_names
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.exchange.differences import columns_as_dict, print_difference
from celery_pgbeat.cli.options.confirmation import confirm, with_yes
from celery_pgbeat.cli.output.next_run import print_next_run
from celery_pgbeat.cli.output.values import as_json, print_json


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@click.option("--to", "revision", type=int, metavar="REVISION", help="What it was at this revision.")
@click.option("--change", type=int, metavar="CHANGE", help="What it was before this change, an id of `changes`.")
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@with_yes
@as_json
def revert(name: str, revision: int | None, change: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Put the definition of the periodic task NAME back to what it was; `changes NAME` lists the revisions.

    It prints what differs, and at a terminal asks. A removed one is made again, with its pause; of one that is there
    the pause, the next run and the jobs stay. A sensitive one stays sensitive, and keeps its present arguments if those
    of then are not recorded.

    Exit codes: 0 done, or nothing differs; 1 the changes do not go back so far, or the question was not answered with
    yes: nothing was changed.
    """
    from celery_pgbeat.api.exchange import differences
    from celery_pgbeat.declare.definition import record_of

    if (revision is None) == (change is None):
        raise click.UsageError("Give one of --to REVISION and --change CHANGE.")
    target = Target.current()
    beat = target.beat()
    new = beat.definition_before(name, revision, change=change)
    stored = target.operators().definitions_of([name]).get(name)
    old = {} if stored is None else record_of(stored)
    changed = differences(old, new)
    if old.get("name", name) != new["name"]:
        changed = {"name": (old.get("name"), new["name"]), **changed}
    applied = bool(changed) and not dry_run
    if not as_json:
        if new["sensitive"]:
            click.echo(f"{name!r} stays sensitive: only code or SQL can undo that.", err=True)
        if not changed:
            click.echo(f"{name!r} already has these values.")
            return
        print_difference(name, "changed" if old else "added", changed)
    if applied:
        confirm(f"Put {name!r} back?", yes)
        row = beat.revert(name, revision, change=change)
    if as_json:
        print_json({"name": name, "applied": applied, "changes": columns_as_dict(changed)})
    elif applied:
        print_next_run(row)
    else:
        click.echo("Nothing was written.")
