"""`group list`: the groups of periodic tasks, their limits and their load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_pgbeat.api.groups import GroupStatus, TaskGroup
from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.table import Column, print_table
from celery_pgbeat.cli.output.values import as_json, print_json, row_as_dict, text
from celery_pgbeat.texts.suggestions import did_you_mean

if TYPE_CHECKING:
    from celery_pgbeat.api import PgBeat


def state_of(group: GroupStatus) -> str:
    """Return the state of a group in a word; an active one may be `full`."""
    most = 1 if group.ordered else group.max_active
    full = most is not None and group.active >= most
    return "full" if full and group.state == "active" else group.state


def rules_of(group: TaskGroup) -> str:
    """Return in words when the jobs of a group get their turn; empty if they wait for nothing."""
    rules = (
        "one at a time, in order" if group.ordered else "",
        f"at most {group.max_active} at once" if group.max_active is not None and not group.ordered else "",
        f"at most {group.rate_limit}" if group.rate_limit else "",
        f"when {', '.join(group.waits_for)} {'has' if len(group.waits_for) == 1 else 'have'} nothing to do"
        if group.waits_for
        else "",
        "paused by a failure" if group.pause_on_failure else "",
    )
    return "; ".join(filter(None, rules))


COLUMNS = (
    Column("GROUP", "name", whole=True),
    Column("STATE", "state", state_of, colours={"paused": "yellow", "full": "yellow", "waiting": "yellow"}),
    Column("TASKS", "tasks"),
    Column("ACTIVE", "active"),
    Column("LIMIT", "max_active"),
    Column("WAITING", "waiting"),
    Column("RULES", "rules", lambda group: text(rules_of(group)), beneath=True),
    Column("REASON", "pause_reason", beneath=True),
)


@click.command(cls=ApiCommand)
@as_json
def groups(as_json: bool) -> None:
    """List the groups of periodic tasks, with their rules and their jobs.

    A group exists as soon as a periodic task names it. ACTIVE counts its jobs that are sent, running or retrying.
    WAITING counts its jobs that wait for their turn, RULES say when they get it. Exit code 0.
    """
    found = Target.current().beat().groups()
    if as_json:
        print_json([{**row_as_dict(group), "state": state_of(group), "rules": rules_of(group)} for group in found])
    else:
        print_table(COLUMNS, found)


def warn_of_a_new_name(beat: PgBeat, name: str) -> None:
    """Say that no periodic task names the group, and which group may have been meant."""
    others = {group.name: group.tasks for group in beat.groups()}
    if not others.pop(name, 0):
        hint = did_you_mean(name, [other for other, tasks in others.items() if tasks])
        click.echo(text(f"No periodic task names the group {name!r} yet{hint or '.'}"), err=True)
