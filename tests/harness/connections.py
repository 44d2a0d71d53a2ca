"""The tests' own connections: a new one for each statement, but one for all statements of one wait.

A test that waits asks 20 times a second. To connect each time costs ten times as much as the statement, of the
processors that beats and workers need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extras import RealDictCursor

# By URL, while this thread waits.
_kept: ContextVar[dict[str, Connection] | None] = ContextVar("kept", default=None)


@contextmanager
def kept() -> Iterator[None]:
    """Keep the connections that `fetch` makes until the end of the block."""
    if _kept.get() is not None:  # a wait within a wait
        yield
        return
    connections: dict[str, Connection] = {}
    token = _kept.set(connections)
    try:
        yield
    finally:
        _kept.reset(token)
        for connection in connections.values():
            connection.close()


def fetch(url: str, statement: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Run one statement in a transaction of its own and return its rows.

    If a kept connection turns out to be broken, the statement is run again on a new one: that the server was
    restarted between two looks is no error.
    """
    connections = _kept.get()
    connection = connections.get(url) if connections else None
    if connection is not None:
        try:
            return _fetch(connection, statement, values)
        except psycopg2.Error:
            if not connection.closed:
                raise
    connection = psycopg2.connect(url)
    connection.autocommit = True
    try:
        return _fetch(connection, statement, values)
    finally:
        if connections is None:
            connection.close()
        else:
            connections[url] = connection


def _fetch(connection: Connection, statement: str, values: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    with connection.cursor(cursor_factory=RealDictCursor) as cursor:
        cursor.execute(statement, values or None)
        return rows_of(cursor)


def rows_of(cursor: RealDictCursor) -> list[dict[str, Any]]:
    """Return what a statement returned: of a `select from`, a row without columns for each."""
    if cursor.description:
        return [dict(row) for row in cursor.fetchall()]
    return [{}] * cursor.rowcount if cursor.statusmessage.startswith("SELECT") else []
