"""`sql`: the SQL of the schema, for administrators who run it by hand. Needs no app and no database."""

from __future__ import annotations

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand, Failure
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.output.values import as_json, print_json


@click.command(cls=ApiCommand)
@click.option(
    "--from",
    "version",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="VERSION",
    help="Only what a schema at this version lacks.",
)
@click.option("--roles", is_flag=True, help="The roles of a schema that is there, with the least grants, instead.")
@as_json
def sql(version: int, roles: bool, as_json: bool) -> None:
    """Print the SQL that `migrate` runs, in one transaction, with the name of the schema filled in.

    Run it as the schema's owner, and set pgbeat_auto_migrate = False. For a schema that exists, give its version with
    --from. For a schema at this package's version the SQL creates the functions and views again.

    With --roles it prints SQL that creates the roles owner, beat, worker, author, reader and person, with names that
    begin with the schema's name, and grants each what it needs. Run it after each migration, as a superuser or as an
    owner of the schema who may create roles.

    Exit codes: 0 done; 1 VERSION is newer than this package.
    """
    from celery_pgbeat.postgres import script
    from celery_pgbeat.postgres.migrate import latest
    from celery_pgbeat.postgres.roles import roles_script

    schema = Target.current().beat().settings.schema
    if roles:
        grants = roles_script(schema)
        if as_json:
            print_json([{"name": "roles", "sql": grants}])
        else:
            click.echo(grants, nl=False)
        return
    if version > latest():
        raise Failure(f"This package knows the schema up to version {latest()}: it has nothing for version {version}.")
    parts = list(script.parts(schema, version))
    if as_json:
        print_json([{"name": part.name, "sql": part.sql} for part in parts])
    else:
        click.echo(script.transaction(parts), nl=False)
