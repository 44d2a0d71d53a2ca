"""Have Django's `migrate` create the schema, and bring it up to date.

The tables are not Django's: beats, workers and SQL use them too, and another project may have made them. So the first
migration of this app calls our own migrator, which takes its own lock and its own transaction. After each later
`migrate` it is called again, because a new version of the package may bring a newer schema without a migration of
Django's. A current schema costs one plain read.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from django.core.management.base import CommandError
from django.db.migrations.operations.base import Operation

from celery_pgbeat import PgBeat
from celery_pgbeat.django.joined import AliasBeat
from celery_pgbeat.django.place import alias_url, database_alias, schema
from celery_pgbeat.errors import PgBeatError


def bring_schema() -> int:
    """Bring the schema to the version of this package; return how many of our migrations were applied.

    It does nothing if `pgbeat_auto_migrate` is off.

    Raises:
        CommandError: the user of the database may not do it, or the database is no Postgres; the message has the way
            out.
    """
    try:
        if not AliasBeat().settings.auto_migrate:
            return 0
        with closing(PgBeat(url=alias_url(), schema=schema())) as beat:
            return beat.migrate()
    except PgBeatError as error:
        raise CommandError(str(error)) from error


def after_migrate(using: str, verbosity: int = 1, stdout: Any = None, **_: Any) -> None:
    """Bring the schema up to date at the end of a `migrate` of its database."""
    if using == database_alias():
        applied = bring_schema()
        if applied and verbosity and stdout is not None:
            stdout.write(f"  Applied {applied} migrations of the schema {schema()}\n")


class BringSchema(Operation):
    """The operation of the first migration. Backwards it leaves the schema, which beats may be using."""

    reduces_to_sql = False  # `sqlmigrate` says so
    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Change nothing: the models have operations of their own."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Create the schema in its database, and in no other one."""
        if schema_editor.connection.alias == database_alias():
            bring_schema()

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Leave the schema."""

    def describe(self) -> str:
        """Say what it does, for `migrate --plan` and `sqlmigrate`."""
        return "Create the schema of celery-pgbeat, as `celery-pgbeat sql` prints it"
