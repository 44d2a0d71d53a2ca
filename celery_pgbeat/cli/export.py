"""`export`: definitions as lines of a file that git can compare."""

from __future__ import annotations

import sys

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.exchange.export_to import export_to
from celery_pgbeat.cli.options.filters import with_like, with_managed_by
from celery_pgbeat.cli.output.progress import Progress
from celery_pgbeat.cli.output.values import print_json, text
from celery_pgbeat.moving.places import BACK


@click.command(cls=ApiCommand)
@with_managed_by
@with_like
@click.option("--json-schema", is_flag=True, help="Print the JSON Schema of a line instead; needs no database.")
@click.option("--to", type=click.Choice(list(BACK)), help="Print it for this scheduler instead; see below.")
@click.option("--json", "_as_json", is_flag=True, help="No effect: each line is JSON anyway.")
def export(managed_by: str | None, like: str | None, json_schema: bool, to: str | None, _as_json: bool) -> None:
    """Print the definitions in name order, each as one line of JSON, for `import` to read.

    First come the groups with a limit and the named blackout windows, unless you choose a manager or names. The output
    has no state: no pauses and no next runs. It leaves out columns that have their default. It contains the arguments
    of sensitive rows. An export blocks no other session; it reads pages of 1,000 rows, one after the other.
    Exit code 0; 1 if a row has JSON that cannot be read: stderr names that row, and all others are exported.

    With --to, the rows are printed for another scheduler: beat-schedule is a Python module, django-celery-beat a script
    for psql, redbeat commands for redis-cli. stderr says what is left out, and what has no counterpart there. Rows of
    code are left out if the other scheduler gets them from the code, for which the app has to be named (-A). Exit code
    1 if another row is.
    """
    from celery_pgbeat.api.exchange import line_of
    from celery_pgbeat.api.line_schema import line_schema
    from celery_pgbeat.api.shared_lines import shared_of
    from celery_pgbeat.errors import InvalidPeriodicTask

    if json_schema:
        print_json(line_schema())
        return
    if to is not None:
        sys.exit(export_to(to, managed_by, like))
    failed = False
    progress = Progress("definitions exported", silent=sys.stdout.isatty())
    operators = Target.current().operators()
    for row in operators.shared_rows() if managed_by is None and like is None else ():
        click.echo(shared_of(row).line)
    for done, row in enumerate(operators.all_tasks(managed_by=managed_by, pattern=like), 1):
        progress(done)
        try:
            click.echo(line_of(row))
        except InvalidPeriodicTask as error:
            failed = True
            click.echo(text(error), err=True)
    progress.clear()
    if failed:
        sys.exit(1)
