"""Reads tables of other schedulers, in any database that SQLAlchemy has a driver for, as plain rows.

Their columns are read from the database, because each version of a scheduler has others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import sqlalchemy
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from celery_pgbeat.errors import InvalidSource
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.safe_text import one_line

Record = dict[str, Any]
PAGE = 1_000  # ids in one statement
CONNECT_TIMEOUT = 5  # seconds; a host that drops packets is given up after this


class Tables:
    """The tables that a connection sees; to be had from `tables_at`."""

    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._place = place

    def rows(self, name: str, schema: str | None = None) -> list[Record]:
        """Read a table, in the order of its key; naive instants are in UTC. Without a schema, `table_of` finds it.

        Raises:
            InvalidSource: there is no such table.
        """
        table = table_of(self._connection, name, schema)
        if table is None:
            raise InvalidSource(f"{self._place} has no table {name!r}: name the database that has it, or another kind")
        found = self._connection.execute(sqlalchemy.select(table).order_by(*table.primary_key.columns))
        return [{str(column): _aware(value) for column, value in row.items()} for row in found.mappings()]

    def by_id(self, name: str) -> dict[Any, Record]:
        """Read a table by its `id`; nothing if this version of the scheduler has none of that name."""
        if table_of(self._connection, name) is None:
            return {}
        return {row["id"]: row for row in self.rows(name)}

    def setting(self, name: str) -> str | None:
        """Return a setting of Postgres; None if it is not set."""
        value = self._connection.scalar(sqlalchemy.select(sqlalchemy.func.current_setting(name, True)))
        return value or None


@contextmanager
def tables_at(source: str | None, own_url: str) -> Iterator[Tables]:
    """Open the database of a URL, or our own.

    Raises:
        InvalidSource: the URL is none, its driver is missing, or the database cannot be read.
    """
    engine = _engine(source, own_url)
    place = masked(engine.url)
    try:
        with engine.connect() as connection:
            yield Tables(connection, place)
    except DBAPIError as error:
        raise InvalidSource(f"{place} cannot be read: {one_line(str(error.orig))}") from error
    except SQLAlchemyError as error:
        raise InvalidSource(f"{place} cannot be read: {one_line(str(error))}") from error
    finally:
        engine.dispose()


def table_of(connection: Connection, name: str, schema: str | None = None) -> sqlalchemy.Table | None:
    """Return a table with its columns: the one on the search path, else the first schema's that has one; or None."""
    inspector = sqlalchemy.inspect(connection)
    schemas: Sequence[str | None] = [schema]
    if not inspector.has_table(name, schema=schema):
        others = () if schema else inspector.get_schema_names()
        schemas = [other for other in others if inspector.has_table(name, schema=other)]
    if not schemas:
        return None
    return sqlalchemy.Table(name, sqlalchemy.MetaData(), schema=schemas[0], autoload_with=connection)


def switch_off(connection: Connection, name: str, changes: str, keys: Collection[Any]) -> None:
    """Set `enabled` to false in the rows of these ids, and tell the scheduler by the time in its table `changes`."""
    table, told = table_of(connection, name), table_of(connection, changes)
    if table is None:
        raise InvalidSource(f"our own database has no table {name!r}: switch its entries off yourself")
    ids = list(keys)
    for at in range(0, len(ids), PAGE):
        connection.execute(table.update().where(table.c.id.in_(ids[at : at + PAGE])).values(enabled=False))
    if told is not None:
        connection.execute(told.update().values(last_update=sqlalchemy.func.clock_timestamp()))


def _engine(source: str | None, own_url: str) -> sqlalchemy.Engine:
    try:
        url = make_url(own_url if source is None else source)
        if url.get_backend_name() in ("postgresql", "postgres"):
            url = normalise_url(url.render_as_string(hide_password=False))
            arguments = {"connect_timeout": CONNECT_TIMEOUT}
        else:
            arguments = {}
        return sqlalchemy.create_engine(url, connect_args=arguments, hide_parameters=True, poolclass=NullPool)
    except (NoSuchModuleError, ImportError) as error:
        raise InvalidSource(f"the driver of the source's database is not installed: {error}") from None
    except (ArgumentError, ValueError):
        raise InvalidSource(
            "the source is not a database URL; write it as postgresql://user:password@host:5432/database"
        ) from None


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) and value.tzinfo is None else value
