"""The commands: `celery -A app pgbeat ...`, or `celery-pgbeat ...` if no app is needed.

Every `celery` command imports this module to find ours, so it loads nothing but click. Each command is a module of its
own, or made of the table of operations (`operation_command.py`), when it is called.

Exit codes: 0 done; 1 failed or refused; 2 wrong usage or settings; 3 unhealthy, or the database is out of reach.
"""

from __future__ import annotations

import os
from typing import Any

import click

from celery_pgbeat.cli.command_line.lazy_group import LazyGroup
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.operations import operations_of
from celery_pgbeat.texts.redaction import hide_secret_settings

hide_secret_settings()  # before `celery report` shows the configuration

OF_THE_TABLE = operations_of("")
COMMANDS = {
    **{name: one.summary for name, one in OF_THE_TABLE.items()},
    "demo": "Watch three beats share the work while one of them is killed.",
    "migrate": "Bring the database schema up to date.",
    "sql": "Print the SQL of the schema, to run it by hand.",
    "validate": "Show what the text of a schedule means, and its next occurrences.",
    "list": "List the periodic tasks.",
    "show": "Show one periodic task: its state, when it runs, its last job.",
    "upcoming": "List what runs next, or the next runs of one periodic task.",
    "graph": "Show which periodic tasks run after which.",
    "changes": "List who changed what.",
    "explain": "Explain why a periodic task is, or is not, running now.",
    "replan": "Plan next runs again, after a change of time zone tables.",
    "jobs": "List the jobs, the latest first.",
    "job": "Show one job, run it again, cancel it, or decide about it.",
    "work": "List, take, give back or finish tasks for people.",
    "overdue": "List what is late, and why.",
    "add": "Add a periodic task, or change the columns that differ.",
    "edit": "Change some columns of a periodic task.",
    "revert": "Put the definition of a periodic task back to what it was.",
    "remove": "Remove periodic tasks.",
    "group": "List, define, pause, resume, finish or remove groups of periodic tasks.",
    "backfill": "Submit the occurrences of a time range, such as missed ones.",
    "export": "Print the definitions, one per line.",
    "import": "Write the definitions of a file into the tables.",
    "compare": "Compare what another scheduler has sent with what ours would send.",
    "nodes": "List the beats and workers.",
    "top": "Watch beats, workers, jobs and what is overdue.",
    "web": "Serve the dashboard: pages in a browser.",
    "doctor": "Look for problems, and print how to fix each.",
    "health": "Check that periodic tasks are being sent; for probes.",
}
# The parts of the help, and the order of the commands in each.
SECTIONS = {
    "Look": ("list", "show", "upcoming", "graph", "explain", "jobs", "job", "overdue", "changes"),
    "Define": ("add", "edit", "revert", "remove", "validate", "export", "import", "compare"),
    "Run": (*OF_THE_TABLE, "group", "backfill", "work", "replan"),
    "Operate": ("health", "doctor", "nodes", "top", "web"),
    "Set up": ("migrate", "sql", "demo"),
}
EXIT_CODES = "Exit codes: 0 done, 1 failed or refused, 2 wrong usage or settings, 3 unhealthy or no database."

settings = {
    "lazy": COMMANDS,
    "operations": OF_THE_TABLE,
    "places": {name: f"command_groups:{name}" for name in ("job", "group", "backfill", "work")},
    "sections": SECTIONS,
    "epilog": EXIT_CODES,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
with_version = click.version_option(package_name="celery-pgbeat", prog_name="celery-pgbeat")


@click.group("pgbeat", cls=LazyGroup, **settings)
@with_version
@click.pass_context
def pgbeat(ctx: click.Context, /, **_: Any) -> None:
    """Periodic tasks in Postgres. The options of the app and the database also work after a command."""
    Target.of(ctx).celery_app = ctx.obj.app
    if ctx.obj.no_color or os.environ.get("NO_COLOR"):
        ctx.color = False


@click.group("celery-pgbeat", cls=LazyGroup, **settings)
@with_version
@click.pass_context
def main(ctx: click.Context) -> None:
    """Periodic tasks in Postgres. The options of the app and the database also work after a command."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
