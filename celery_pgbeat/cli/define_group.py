"""`group define`: what a group is: a limit, an order, other groups that come first."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import group_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.groups import rules_of
from celery_pgbeat.cli.limit_group import warn_of_a_new_name
from celery_pgbeat.cli.output import as_json, print_result
from celery_pgbeat.cli.target import Target


@click.command("define", cls=ApiCommand)
@click.argument("name", shell_complete=group_names)
@click.option("--max-active", type=int, metavar="NUMBER", help="How many of its jobs may be under way at once.")
@click.option("--ordered", is_flag=True, help="Its jobs run one at a time, in order of their scheduled time.")
@click.option(
    "--waits-for",
    multiple=True,
    metavar="GROUP",
    shell_complete=group_names,
    help="A group that must have nothing under way, waiting or due before a job of this one gets its turn; may be "
    "given several times.",
)
@click.option("--pause-on-failure", is_flag=True, help="A job that fails or is lost pauses the group.")
@click.option("--rate-limit", metavar="RATE", help="How many of its jobs are sent: 10/s, 100/m or 5/h.")
@as_json
def define_group(
    name: str,
    max_active: int | None,
    ordered: bool,
    waits_for: tuple[str, ...],
    pause_on_failure: bool,
    rate_limit: str | None,
    as_json: bool,
) -> None:
    """Set the rules of a group. An option that is left out has no effect on its jobs any more; a pause stays.

    If no periodic task names the group yet, stderr says so: `group remove` removes one with a misspelt name.
    """
    beat = Target.current().beat()
    group = beat.define_group(
        name,
        max_active=max_active,
        ordered=ordered,
        waits_for=waits_for,
        pause_on_failure=pause_on_failure,
        rate_limit=rate_limit,
    )
    warn_of_a_new_name(beat, name)
    print_result(group, f"The group {name!r}: {rules_of(group) or 'its jobs wait for nothing'}.", as_json)
