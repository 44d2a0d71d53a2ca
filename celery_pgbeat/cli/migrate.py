"""`migrate`: bring the database schema up to date."""

from __future__ import annotations

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.values import as_json, print_result


@click.command(cls=ApiCommand)
@as_json
def migrate(as_json: bool) -> None:
    """Bring the database schema up to date. Any number of processes may do it at once."""
    from celery_pgbeat.postgres import migrate as schema
    from celery_pgbeat.postgres.api_queries import translating

    database = Target.current().beat().database
    with translating(database):
        applied = schema.migrate(database.engine, database.schema)
        with database.engine.connect() as connection:
            version = schema.current(connection, database.schema).version
    if applied:
        sentence = f"Applied {applied} migrations: the schema {database.schema!r} is at version {version}."
    else:
        sentence = f"The schema {database.schema!r} is up to date at version {version}."
    print_result({"schema": database.schema, "version": version, "applied": applied}, sentence, as_json)
