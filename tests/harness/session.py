"""A client without the product: one connection and plain SQL, as in psql or any other language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg2
import psycopg2.extras

from celery_pgbeat.postgres.engine import normalise_url
from tests.harness.connections import rows_of
from tests.harness.rows import insert_statement
from tests.harness.wait import eventually

T = TypeVar("T")
PATIENCE = 10.0  # seconds until a test gives up on another connection


class Session:
    """One autocommitting connection; `begin` opens a transaction by hand."""

    def __init__(self, url: str) -> None:
        plain = normalise_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self.connection = psycopg2.connect(plain)
        self.connection.autocommit = True
        self.pid = self.connection.info.backend_pid

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Run a statement and return its rows."""
        with self.connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            cursor.execute(sql, values or None)
            return rows_of(cursor)

    def row(self, sql: str, *values: Any) -> dict[str, Any]:
        """Run a statement and return its only row."""
        (row,) = self.rows(sql, *values)
        return row

    def value(self, sql: str, *values: Any) -> Any:
        """Run a statement and return the only value of its only row."""
        (value,) = self.row(sql, *values).values()
        return value

    def insert(self, name: str, **columns: Any) -> dict[str, Any]:
        """Insert a periodic task, by default of the task `app.probe`; return the row."""
        statement, values = insert_statement(name, **columns)
        with self.connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
            cursor.execute(f"{statement} returning *", values)
            return dict(cursor.fetchone())

    def task(self, name: str) -> dict[str, Any]:
        """Return the row of a periodic task."""
        return self.row("select * from pgbeat.periodic_task where name = %s", name)

    def refusal(self, sql: str, *values: Any) -> psycopg2.Error:
        """Run a statement that must fail, and return its error."""
        try:
            self.rows(sql, *values)
        except psycopg2.Error as error:
            return error
        raise AssertionError(f"not refused: {sql} {values}")

    def notified_by(self, action: Callable[[], Any]) -> bool:
        """Return whether an action of this session notifies the processes that listen."""
        listener = self.connection
        self.rows("listen pgbeat")
        listener.notifies.clear()
        action()
        self.rows("notify pgbeat, 'end'")  # notifications keep their order
        eventually(lambda: self._heard("end"), PATIENCE, "the end mark")
        heard = self._heard("")
        self.rows("unlisten pgbeat")
        return heard

    def _heard(self, payload: str) -> bool:
        self.connection.poll()
        return any(notify.payload == payload for notify in self.connection.notifies)

    def eventually_waits(self, other: Session) -> None:
        """Return once the other session's statement waits for a lock."""
        eventually(
            lambda: self.rows("select pid from pg_locks where pid = %s and not granted", other.pid),
            PATIENCE,
            "the other session does not wait",
        )


def reason(error: psycopg2.Error) -> str:
    """Return an error's message without its context."""
    return str(error.diag.message_primary)
