"""`resume`: resume paused periodic tasks."""

from __future__ import annotations

import click

from celery_pgbeat.cli.chosen import choose, left_alone, one_name, spoken, with_names
from celery_pgbeat.cli.confirmation import with_yes
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@with_names
@click.option(
    "--reason", metavar="TEXT", help="Of what a pattern or --all means, only rows that were paused for this reason."
)
@with_yes
@as_json
def resume(names: tuple[str, ...], every: bool, reason: str | None, yes: bool, as_json: bool) -> None:
    """Resume paused periodic tasks. Runs that they missed while paused are not caught up.

    NAME may be a pattern, see "Names and patterns" in docs/shell.md. A pattern or --all resumes only paused rows.

    Exit codes: 0 resumed; 1 a name is unknown, a pattern matches nothing, or the question was not answered with yes:
    nothing was resumed.
    """
    beat = Target.current().beat()
    if (name := one_name(names, every)) is not None:
        row = beat.resume(name)
        print_result(row, f"Resumed {name!r}.", as_json)
        return
    needless = "not paused" if reason is None else f"not paused for the reason {reason!r}"
    chosen = choose(names, every, lambda row: not row["enabled"] and reason in (None, row["pause_reason"]), needless)
    chosen.confirm("Resume", yes)
    resumed = beat.resume_many(chosen.names, missing_ok=True)
    held = sum(row["group_paused"] for row in chosen.rows)
    if held:
        click.echo(f"{held:,} of them still do not run: their group is paused.", err=True)
    print_result({"resumed": resumed}, f"Resumed {spoken(resumed)}.{left_alone(chosen, needless)}", as_json)
