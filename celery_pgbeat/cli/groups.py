"""`groups`: the groups of periodic tasks, their limits and their load."""

from __future__ import annotations

import click

from celery_pgbeat.api.groups import GroupStatus
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json, row_as_dict, text
from celery_pgbeat.cli.table import Column, print_table
from celery_pgbeat.cli.target import Target


def state_of(group: GroupStatus) -> str:
    """Return the state of a group in a word."""
    full = group.max_active is not None and group.active >= group.max_active
    return "paused" if group.paused else "full" if full else "open"


COLUMNS = (
    Column("GROUP", "name", lambda group: text(group.name), whole=True),
    Column("STATE", "state", state_of, colours={"paused": "yellow", "full": "yellow"}),
    Column("TASKS", "tasks", lambda group: str(group.tasks)),
    Column("ACTIVE", "active", lambda group: str(group.active)),
    Column("LIMIT", "max_active", lambda group: text(group.max_active)),
    Column("WAITING", "waiting", lambda group: str(group.waiting)),
    Column("REASON", "pause_reason", lambda group: text(group.pause_reason), beneath=True),
)


@click.command(cls=ApiCommand)
@as_json
def groups(as_json: bool) -> None:
    """List the groups of periodic tasks, with their limits and their jobs.

    A group exists as soon as a periodic task names it. ACTIVE counts its jobs that are sent, running or retrying.
    WAITING counts its jobs that wait because the limit is reached. Exit code 0.
    """
    found = Target.current().beat().groups()
    if as_json:
        print_json([{**row_as_dict(group), "state": state_of(group)} for group in found])
    else:
        print_table(COLUMNS, found)
