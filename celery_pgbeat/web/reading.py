"""What the dashboard reads: the Python API and the operators' statements, on connections that cannot write.

A page reads in one short transaction, so that its parts fit together. It is read-only, and Postgres ends a statement
that takes too long. It locks nothing. It ends before the page is drawn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import DBAPIError, TimeoutError

from celery_pgbeat.api import PgBeat
from celery_pgbeat.api.ahead import coming_runs
from celery_pgbeat.api.exchange import read_value
from celery_pgbeat.api.rows import Upcoming
from celery_pgbeat.declare.update import changes_of
from celery_pgbeat.errors import DatabaseBusy, NotPermitted
from celery_pgbeat.postgres.dashboard_queries import DashboardQueries
from celery_pgbeat.postgres.database import NO_RIGHT, Database, reason, sqlstate
from celery_pgbeat.schedules.windows import names_in
from celery_pgbeat.settings import Settings

# As text: the driver's own ways to begin a transaction set up the session first, with more round trips. The limits are
# those of the transaction, because behind a pooler the session belongs to others as well.
BEGIN = ("begin isolation level repeatable read, read only", "set local statement_timeout = '5s'")


class ReadOnlyDatabase(Database):
    """A database of which each thread reads in a transaction of its own, within `reading`."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(url, schema)
        self._open = threading.local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open a transaction that only reads; all statements of this thread join it until it ends.

        Raises:
            DatabaseUnavailable: Postgres is out of reach, or ended a statement.
        """
        try:
            with self.engine.connect() as connection, _transaction(connection):
                self._open.connection = connection
                yield
        except (DBAPIError, TimeoutError) as error:
            raise self.translated(error) from error
        finally:
            self._open.connection = None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Within `reading`, run what the user may lack a right for, or what may take too long; then the page goes on.

        Raises:
            NotPermitted: the user lacks it.
            DatabaseBusy: it took too long.
        """
        connection: Connection = self._open.connection
        connection.exec_driver_sql("savepoint attempt")
        try:
            yield
        except (NotPermitted, DatabaseBusy):
            connection.exec_driver_sql("rollback to savepoint attempt")
            raise

    def execute(
        self, sql: str, parameters: dict[str, Any] | None = None, connection: Connection | None = None
    ) -> Sequence[Row[Any]]:
        """Run one statement in the transaction of this thread, or in one of its own."""
        current = connection if connection is not None else getattr(self._open, "connection", None)
        if current is None:
            with self.reading():
                return self.execute(sql, parameters)
        try:
            return super().execute(sql, parameters, current)
        except (DBAPIError, TimeoutError) as error:
            raise self.translated(error) from error

    def translated(self, error: Exception) -> Exception:
        """Return one of our errors in place of one that may pass by itself, or that a right would mend."""
        return _without_right(self, error) or super().translated(error)


def translated(database: Database, error: Exception) -> Exception:
    """Return one of our errors in place of one that may pass by itself, or that a right would mend."""
    return _without_right(database, error) or database.translated(error)


def _without_right(database: Database, error: Exception) -> NotPermitted | None:
    origin = getattr(error, "orig", None)
    if sqlstate(origin) != NO_RIGHT:
        return None
    return NotPermitted(f"The dashboard's user of {database.shown_url} lacks a right: {reason(origin)}")


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    """Read in a transaction; there is nothing to commit at its end."""
    try:
        for statement in BEGIN:
            connection.exec_driver_sql(statement)
        yield
    finally:
        if not connection.invalidated:
            try:
                connection.exec_driver_sql("rollback")
            except DBAPIError:
                connection.invalidate()  # whatever is left of the transaction ends with it


class Rehearsal(NamedTuple):
    """A change that was not made: the columns that it would write, and the runs that would follow."""

    columns: Mapping[str, Any]
    runs: Sequence[Upcoming]


class Reader(PgBeat):
    """The API of another `PgBeat`, on connections of its own that cannot write."""

    def __init__(self, beat: PgBeat) -> None:
        super().__init__()
        self._app = beat._app  # not by the constructor: that would configure the app again
        self._beat = beat
        self._own: dict[int, ReadOnlyDatabase] = {}

    @property
    def settings(self) -> Settings:
        """The settings of the other one."""
        return self._beat.settings

    @property
    def database(self) -> ReadOnlyDatabase:
        """The database of this process."""
        process = os.getpid()
        if process not in self._own:
            self._own.setdefault(process, ReadOnlyDatabase(self.settings.required_url, self.settings.schema))
        return self._own[process]

    @property
    def zone(self) -> str:
        """The zone of periodic tasks that have none of their own."""
        return self._timezone

    @property
    def queries(self) -> DashboardQueries:
        """The statements of operators and of the dashboard."""
        return DashboardQueries(self.database)

    def runs_after_change(self, name: str, given: Mapping[str, Any], limit: int) -> Rehearsal:
        """Return when a periodic task would run if these columns were changed now, as if it were not paused.

        Args:
            name: of the row.
            given: columns that decide its times, as `update` takes them.
            limit: how many runs to compute.

        Raises:
            UnknownPeriodicTask: there is no such row.
            InvalidSchedule, InvalidPeriodicTask: the change would be refused.
        """
        row = self.get(name)
        columns = changes_of(row, given, self.settings, self._app_timezone)
        changed = {column: read_value(column, value) for column, value in columns.items()}
        known = self._row("preview_row", name, None)
        after = {**known, "anchor": row.anchor, **changed}
        set_at = known["now"] if after["schedule"] != row.schedule else known["schedule_set_at"]
        anchor = after["anchor"] or after["start_at"] or set_at
        if not after["schedule"]:
            return Rehearsal({**changed, "anchor": anchor}, ())
        if "blackout" in changed:
            after["windows"] = self.queries.named_windows(sorted(names_in(changed["blackout"] or ())))
        unplanned = dict.fromkeys(("problem", "planned_revision", "held_back", "judged_from", "planned_for"))
        record = {**after, **unplanned, "anchor": anchor, "enabled": True, "planned_from": known["now"]}
        runs = tuple(islice(coming_runs(record, self._rules), limit))
        return Rehearsal({**changed, "anchor": anchor}, runs)

    def close(self) -> None:
        """Close the connections of this process."""
        if (database := self._own.get(os.getpid())) is not None:
            database.close()
