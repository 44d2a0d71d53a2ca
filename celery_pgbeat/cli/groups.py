"""`groups`: the groups of periodic tasks, their limits and their load."""

from __future__ import annotations

import click

from celery_pgbeat.api.groups import GroupStatus
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json, print_table, text
from celery_pgbeat.cli.target import Target

COLOURS = {"paused": "yellow", "full": "yellow"}


@click.command(cls=ApiCommand)
@as_json
def groups(as_json: bool) -> None:
    """List the groups of periodic tasks, with their limits and their jobs.

    A group exists as soon as a periodic task names it. ACTIVE counts its jobs that are sent, running or retrying.
    WAITING counts its jobs that wait because the limit is reached. Exit code 0.
    """
    found = Target.current().beat().groups()
    if as_json:
        print_json(found)
        return
    headings = ("GROUP", "STATE", "TASKS", "ACTIVE", "LIMIT", "WAITING", "REASON")
    print_table(headings, [_cells(group) for group in found], COLOURS)


def _cells(group: GroupStatus) -> tuple[str, ...]:
    full = group.max_active is not None and group.active >= group.max_active
    return (
        text(group.name),
        "paused" if group.paused else "full" if full else "open",
        str(group.tasks),
        str(group.active),
        text(group.max_active),
        str(group.waiting),
        text(group.pause_reason),
    )
