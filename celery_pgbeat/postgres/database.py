"""One database, one schema: run a named statement, know a lost connection from a wrong statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import Connection, Engine, Row
from sqlalchemy.engine.interfaces import DBAPIModule
from sqlalchemy.exc import DBAPIError, TimeoutError

from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable
from celery_pgbeat.postgres.engine import create_engine, masked
from celery_pgbeat.postgres.statements import checked_schema, statement

# SQLSTATE classes and codes after which the same statement may succeed a little later, on a new connection:
# connection trouble, too many connections, out of disk or memory, shut-down, starting up, read-only standby.
PASSING = ("08", "53", "57P", "25006")
# Postgres ended the statement in favour of another one: serialisation failure, deadlock, lock or statement time-out.
BUSY = ("40001", "40P01", "55P03", "57014")
SENTENCES = re.compile(r"(?<![.!?:,])\s*\n\s*(?=[A-Z]|connection )")  # between two of libpq's
# The user lacks a privilege.
NO_RIGHT = "42501"


class Database:
    """The schema's database, for one process. Connections are made on first use, never before.

    Example:
        >>> Database("postgresql://shop:secret@localhost/shop")
        Database('postgresql+psycopg2://shop:***@localhost/shop', schema='pgbeat')
    """

    def __init__(self, url: str, schema: str = "pgbeat") -> None:
        self.url = url
        self.schema = checked_schema(schema)
        self.engine: Engine = create_engine(url)
        self._driver_error: type[DBAPIModule.Error] = self.engine.dialect.loaded_dbapi.Error

    def __repr__(self) -> str:
        return f"Database({self.shown_url!r}, schema={self.schema!r})"

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return masked(self.engine.url)

    @property
    def shown_place(self) -> str:
        """The schema and the database in words, for a line of the log; without the password."""
        return f"the schema {self.schema!r} at {self.shown_url}"

    def run(
        self,
        name: str,
        /,
        connection: Connection | None = None,
        *,
        direct: bool = False,
        repeatable: bool = False,
        **parameters: Any,
    ) -> Sequence[Row[Any]]:
        """Run the statement `sql/<name>.sql` and return its rows.

        With `connection` the statement joins that connection's transaction; without, it commits by itself.

        `direct` is for what runs for every job: it goes past SQLAlchemy, whose part in a statement costs a process as
        much as all the rest of it. Its rows are the driver's own tuples. If it fails, and is `repeatable` (a second
        run changes nothing and returns the same), it is run once more, through SQLAlchemy.

        Raises:
            DatabaseUnavailable: Postgres is out of reach or cannot write now; trying again later is right.
        """
        sql = statement(name, self.schema)
        if connection is None and direct:
            return self._run_direct(sql, parameters, repeatable)
        return self.execute(sql, parameters, connection)

    def execute(
        self, sql: str, parameters: dict[str, Any] | None = None, connection: Connection | None = None
    ) -> Sequence[Row[Any]]:
        """Run one statement given as text, in the driver's own parameter style."""
        if connection is not None:
            result = connection.exec_driver_sql(sql, parameters or None)
            return result.fetchall() if result.returns_rows else []
        try:
            with self.engine.connect() as own:
                result = own.exec_driver_sql(sql, parameters or None)
                return result.fetchall() if result.returns_rows else []
        except (DBAPIError, TimeoutError) as error:
            raise self.translated(error) from error

    def _run_direct(self, sql: str, parameters: dict[str, Any], repeatable: bool) -> Sequence[Row[Any]]:
        """Run a statement past SQLAlchemy; if it fails, raise as SQLAlchemy does, or run it through SQLAlchemy."""
        try:
            connection = self.engine.raw_connection()
        except (self._driver_error, TimeoutError):  # nothing has been run yet
            return self.execute(sql, parameters)
        try:
            cursor = connection.cursor()
            cursor.execute(sql, parameters)
            return cursor.fetchall()
        except self._driver_error as error:
            broken = self.engine.dialect.is_disconnect(error, connection.dbapi_connection, None)
            if repeatable or broken:
                connection.invalidate()
            if broken:
                self.close()  # the other connections are older, and are probably broken too
            if not repeatable:
                raise self.translated(self._wrapped(error, broken)) from error
        except BaseException:  # a time limit that strikes in the middle: what this connection is doing is unknown
            connection.invalidate()
            raise
        finally:
            connection.close()
        return self.execute(sql, parameters)

    def _wrapped(self, error: Exception, broken: bool) -> Exception:
        """Return a driver's error as SQLAlchemy shows it."""
        return DBAPIError.instance(
            None,
            None,
            error,
            self._driver_error,
            hide_parameters=True,
            connection_invalidated=broken,
            dialect=self.engine.dialect,
        )

    def translated(self, error: Exception) -> Exception:
        """Return DatabaseUnavailable in place of an error that may be over soon by itself, else the error."""
        if isinstance(error, DatabaseUnavailable):
            return error
        origin = getattr(error, "orig", None)
        code = sqlstate(origin)
        if code is not None and code.startswith(BUSY):
            return DatabaseBusy(f"Postgres at {self.shown_url} ended a statement: {reason(origin)}")
        broken = isinstance(error, TimeoutError) or getattr(error, "connection_invalidated", False)
        # A connection that could not even be made carries no SQLSTATE.
        unmade = code is None and type(origin).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
        if broken or unmade or (code is not None and code.startswith(PASSING)):
            return DatabaseUnavailable(f"Postgres at {self.shown_url} is not usable: {reason(origin or error)}")
        return error

    def close(self) -> None:
        """Close all connections; the next statement makes new ones."""
        self.engine.dispose()


def reason(error: BaseException | None) -> str:
    """Return what went wrong as sentences on one line, so that another sentence may follow.

    Without the statement, which Postgres adds to an error in a function. libpq writes several sentences about a failed
    connection, with a line break in place of the full stop.
    """
    message = getattr(getattr(error, "diag", None), "message_primary", None)
    line = " ".join(SENTENCES.sub(". ", str(message or error).strip()).split())
    return line if line.endswith((".", "!", "?")) else f"{line}."


def sqlstate(error: BaseException | None) -> str | None:
    """Return the SQLSTATE of a driver's error, psycopg2's or psycopg's, or None."""
    return getattr(error, "pgcode", None) or getattr(error, "sqlstate", None)
