"""What the dashboard writes: one transaction for each action, on connections apart from those that read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, TimeoutError

from celery_pgbeat.api import PgBeat
from celery_pgbeat.web.access import Person
from celery_pgbeat.web.reading import translated


class Writer:
    """The Python API for users who may change something.

    Args:
        beat: what writes.
        is_own: whether only the dashboard uses it, so that its connections end with the dashboard.
    """

    def __init__(self, beat: PgBeat, is_own: bool) -> None:
        self.beat = beat
        self._is_own = is_own

    @contextmanager
    def changing(self, person: Person) -> Iterator[Connection]:
        """Open a transaction for changes by a person; it commits at the end, or rolls back on an error.

        This is the only place that tells Postgres who acts: `current_setting('pgbeat.who', true)` is the name until the
        transaction ends, and empty if it is not known.

        Raises:
            DatabaseUnavailable: Postgres is out of reach, or ended a statement.
            NotPermitted: the user of the database lacks a right.
        """
        database = self.beat.database
        try:
            with database.engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
                database.run("bound_waits", connection)
                database.run("name_person", connection, who=person.name or None, reason=None)
                yield connection
        except (DBAPIError, TimeoutError) as error:
            raise translated(database, error) from error

    def close(self) -> None:
        """Close the connections that only the dashboard uses."""
        if self._is_own:
            self.beat.close()
