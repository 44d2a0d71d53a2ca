"""THE SHELL DOOR: `celery -A app pgbeat ...` and, where no app is needed, `celery-pgbeat ...`.

Every `celery` command imports this module to find ours, so it loads nothing but click: each command is a module of
its own, imported when it is called.

Exit codes: 0 done; 1 failed or refused; 2 wrong usage or settings; 3 unhealthy, or the database is out of reach.
"""

from __future__ import annotations

from typing import Any

import click

from celery_pgbeat.cli.group import LazyGroup
from celery_pgbeat.cli.target import Target
from celery_pgbeat.redaction import hide_secret_settings

hide_secret_settings()  # before `celery report` shows the configuration

COMMANDS = {
    "demo": "Watch three beats share the work while one of them is killed.",
    "migrate": "Bring the database schema up to date.",
    "sql": "Print the SQL of the schema, for those who run it by hand.",
    "validate": "See what the text of a schedule means, and its next occurrences.",
    "list": "List the periodic tasks.",
    "show": "Show one periodic task with all that is known of it.",
    "upcoming": "List what runs next, or the next runs of one periodic task.",
    "explain": "Say why a periodic task is, or is not, running now.",
    "jobs": "List the jobs, the latest first.",
    "add": "Declare a periodic task: add it, or change what differs.",
    "remove": "Remove periodic tasks.",
    "pause": "Pause a periodic task.",
    "resume": "Resume a paused periodic task.",
    "groups": "List the groups of periodic tasks.",
    "limit-group": "Set how many jobs of a group may be under way at a time.",
    "pause-group": "Pause the periodic tasks of a group.",
    "resume-group": "Resume a paused group.",
    "trigger": "Start a job of a periodic task now.",
    "backfill": "Submit the occurrences of a range of time, such as those that were missed.",
    "backfills": "List the backfills, and how far each has come.",
    "cancel-backfill": "Cancel what a backfill has not submitted yet.",
    "export": "Print the definitions, a line each.",
    "import": "Make the definitions in the table those of a file.",
    "nodes": "List the beats and workers.",
    "top": "Watch beats, jobs and what is late.",
    "doctor": "Look for whatever is wrong, and say how to mend it.",
    "health": "Tell whether periodic tasks are being sent; for probes.",
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
    if ctx.obj.no_color:
        ctx.color = False


@click.group("celery-pgbeat", cls=LazyGroup, lazy=COMMANDS, epilog=EXIT_CODES)
@click.option("-A", "--app", metavar="MODULE", help="The Celery app, as for `celery`; most commands need none.")
@with_url
@with_schema
@click.version_option(package_name="celery-pgbeat", prog_name="celery-pgbeat")
@click.pass_context
def main(ctx: click.Context, /, app: str | None, url: str | None, schema: str | None) -> None:
    """Periodic tasks in Postgres."""
    ctx.meta[Target.KEY] = Target(url, schema, app_name=app)
