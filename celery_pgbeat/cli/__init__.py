"""The commands: `celery -A app pgbeat ...`, or `celery-pgbeat ...` if no app is needed.

Every `celery` command imports this module to find ours, so it loads nothing but click. Each command is a module of its
own, which is imported when the command is called.

Exit codes: 0 done; 1 failed or refused; 2 wrong usage or settings; 3 unhealthy, or the database is out of reach.
"""

from __future__ import annotations

import os
from typing import Any

import click

from celery_pgbeat.cli.group import LazyGroup
from celery_pgbeat.cli.target import Target
from celery_pgbeat.redaction import hide_secret_settings

hide_secret_settings()  # before `celery report` shows the configuration

COMMANDS = {
    "demo": "Watch three beats share the work while one of them is killed.",
    "migrate": "Bring the database schema up to date.",
    "sql": "Print the SQL of the schema, to run it by hand.",
    "validate": "Show what the text of a schedule means, and its next occurrences.",
    "list": "List the periodic tasks.",
    "show": "Show one periodic task: its state, when it runs, its last job.",
    "upcoming": "List what runs next, or the next runs of one periodic task.",
    "explain": "Explain why a periodic task is, or is not, running now.",
    "jobs": "List the jobs, the latest first.",
    "job": "Show one job in full.",
    "overdue": "List what is late, and why.",
    "add": "Add a periodic task, or change the columns that differ.",
    "remove": "Remove periodic tasks.",
    "pause": "Pause a periodic task.",
    "resume": "Resume a paused periodic task.",
    "groups": "List the groups of periodic tasks.",
    "limit-group": "Set how many jobs of a group may be under way at once.",
    "pause-group": "Pause the periodic tasks of a group.",
    "resume-group": "Resume a paused group.",
    "trigger": "Start a job of a periodic task now.",
    "backfill": "Submit the occurrences of a time range, such as missed ones.",
    "backfills": "List the backfills and their progress.",
    "cancel-backfill": "Cancel a backfill; jobs that it has submitted go on.",
    "export": "Print the definitions, one per line.",
    "import": "Write the definitions of a file into the table.",
    "nodes": "List the beats and workers.",
    "top": "Watch beats, workers, jobs and late rows.",
    "doctor": "Look for problems, and print how to fix each.",
    "health": "Check that periodic tasks are being sent; for probes.",
}
EXIT_CODES = "Exit codes: 0 done, 1 failed or refused, 2 wrong usage or settings, 3 unhealthy or no database."

with_url = click.option("--url", metavar="URL", help="The database; default pgbeat_url of the app, else PGBEAT_URL.")
with_schema = click.option("--schema", metavar="NAME", help="The database schema; default pgbeat.")


@click.group("pgbeat", cls=LazyGroup, lazy=COMMANDS, epilog=EXIT_CODES)
@with_url
@with_schema
@click.pass_context
def pgbeat(ctx: click.Context, /, url: str | None, schema: str | None, **_: Any) -> None:
    """Periodic tasks in Postgres."""
    ctx.meta[Target.KEY] = Target(url, schema, app=ctx.obj.app)
    if ctx.obj.no_color or os.environ.get("NO_COLOR"):
        ctx.color = False


@click.group("celery-pgbeat", cls=LazyGroup, lazy=COMMANDS, epilog=EXIT_CODES)
@click.option("-A", "--app", metavar="MODULE", help="The Celery app, as for `celery`; most commands need none.")
@with_url
@with_schema
@click.version_option(package_name="celery-pgbeat", prog_name="celery-pgbeat")
@click.pass_context
def main(ctx: click.Context, /, app: str | None, url: str | None, schema: str | None) -> None:
    """Periodic tasks in Postgres."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    ctx.meta[Target.KEY] = Target(url, schema, app_name=app)
