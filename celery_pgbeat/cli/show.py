"""`show`: all columns of one periodic task."""

from __future__ import annotations

import click

from celery_pgbeat.cli.completion import periodic_task_names
from celery_pgbeat.cli.failure import ApiCommand
from celery_pgbeat.cli.output import as_json, print_json, print_pairs, row_as_dict, text
from celery_pgbeat.cli.target import Target


@click.command(cls=ApiCommand)
@click.argument("name", shell_complete=periodic_task_names)
@click.option("--reveal", is_flag=True, help="Show the arguments of a sensitive row too.")
@as_json
def show(name: str, reveal: bool, as_json: bool) -> None:
    """Show all columns of one periodic task; the arguments of a sensitive one only with --reveal."""
    row = row_as_dict(Target.current().beat().get(name), reveal=reveal)
    if as_json:
        print_json(row)
    else:
        print_pairs([(column, text(value)) for column, value in row.items() if value is not None])
