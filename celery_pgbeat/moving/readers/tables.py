"""Reads tables of other schedulers, in any database that SQLAlchemy has a driver for, as plain rows.

Their columns are read from the database, because each version of a scheduler has others. In Postgres only a table on
the search path is read, in a transaction that cannot write: a view, or a policy for rows, would run its owner's code
with the rights of the person who imports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import sqlalchemy
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from celery_pgbeat.errors import InvalidSetting, InvalidSource
from celery_pgbeat.postgres.engine import masked, normalise_url, read_url
from celery_pgbeat.texts.safe_text import one_line

Record = dict[str, Any]
PAGE = 1_000  # ids in one statement
CONNECT_TIMEOUT = 5  # seconds; a host that drops packets is given up after this


FIND = sqlalchemy.text("""
select space.nspname as schema, pg_get_userbyid(found.relowner) as owner, found.relkind in ('r', 'p') as is_table,
    case when :on_path and pg_table_is_visible(found.oid) and found.relpersistence <> 't' then 1
        when space.nspname = :own then 2 end as is_meant
from pg_class as found join pg_namespace as space on space.oid = found.relnamespace
where found.relname = :name and found.relkind in ('r', 'p', 'v', 'm', 'f')
order by is_meant nulls last, schema
""")


class Tables:
    """The tables that a connection sees; to be had from `tables_at`.

    Attributes:
        read: the tables that were read, with their owners where those are known.
    """

    def __init__(self, connection: Connection, place: str, read: list[str]) -> None:
        self.read = read
        self._connection = connection
        self._place = place

    def rows(self, name: str, schema: str | None = None, *, on_path: bool = True) -> list[Record]:
        """Read a table, in the order of its key; naive instants are in UTC.

        Args:
            name: of the table.
            schema: its scheduler's own, where it is if the search path has none.
            on_path: whether it may be on the search path.

        Raises:
            InvalidSource: there is no such table, or it cannot be read.
        """
        table, owner = found_table(self._connection, name, schema, on_path=on_path)
        if table is None:
            raise InvalidSource(f"{self._place} has no table {name!r}: name the database that has it, or another kind")
        self.read.append(f"{table.fullname} of {owner}" if owner else table.fullname)
        try:
            found = self._connection.execute(sqlalchemy.select(table).order_by(*table.primary_key.columns))
            return [{str(column): _aware(value) for column, value in row.items()} for row in found.mappings()]
        except (ValueError, OverflowError) as error:  # of the driver: Python has no such year
            raise InvalidSource(f"the table {name!r} has a value that Python cannot have: {error}") from error

    def by_id(self, name: str, schema: str | None = None) -> dict[Any, Record]:
        """Read a table by its `id`; nothing if this version of the scheduler has none of that name."""
        if found_table(self._connection, name, schema)[0] is None:
            return {}
        return {row["id"]: row for row in self.rows(name, schema)}

    def setting(self, name: str) -> str | None:
        """Return a setting of Postgres; None if it is not set."""
        value = self._connection.scalar(sqlalchemy.select(sqlalchemy.func.current_setting(name, True)))
        return value or None


@contextmanager
def tables_at(source: str | None, own_url: str, read: list[str]) -> Iterator[Tables]:
    """Open the database of a URL, or our own.

    Args:
        source: the URL; None for our own.
        own_url: of our own.
        read: to which the tables that are read are added.

    Raises:
        InvalidSource: the URL is none, its driver is missing, or the database cannot be read.
    """
    engine = _engine(source, own_url)
    place = masked(engine.url)
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(postgresql_readonly=True)
                connection.execute(sqlalchemy.text("set local row_security = off"))  # or a policy runs its owner's code
            yield Tables(connection, place, read)
    except DBAPIError as error:
        raise InvalidSource(f"{place} cannot be read: {one_line(str(error.orig))}") from error
    except SQLAlchemyError as error:
        raise InvalidSource(f"{place} cannot be read: {one_line(str(error))}") from error
    finally:
        engine.dispose()


def found_table(
    connection: Connection, name: str, schema: str | None = None, *, on_path: bool = True
) -> tuple[sqlalchemy.Table | None, str | None]:
    """Return a table with its columns, and its owner: the one on the search path, else in the scheduler's own schema.

    Both are None if there is none; without Postgres the owner is not known.

    Raises:
        InvalidSource: what has the name there is no table, or only other schemas have one.
    """
    owner = None
    if connection.dialect.name == "postgresql":
        found = connection.execute(FIND, {"name": name, "own": schema, "on_path": on_path}).all()
        if not found or not (on_path or found[0].is_meant):
            return None, None
        first = found[0]
        shown = f"{first.schema}.{name} of {first.owner}"
        if not first.is_meant:
            raise InvalidSource(
                f"the table {name!r} is not on the search path. If you mean {shown}, add "
                f"?options=-csearch_path%3D{first.schema} to the URL of the source"
            )
        if not first.is_table:
            raise InvalidSource(f"{shown} is no table: what else has that name could run code of its owner as you")
        schema, owner = first.schema, first.owner
    elif not sqlalchemy.inspect(connection).has_table(name, schema=schema):
        return None, None
    return sqlalchemy.Table(name, sqlalchemy.MetaData(), schema=schema, autoload_with=connection), owner


def switch_off(
    connection: Connection, name: str, changes: str, keys: Collection[Any], schema: str | None = None
) -> None:
    """Set `enabled` to false in the rows of these ids, and tell the scheduler by the time in its table `changes`."""
    (table, _), (told, _) = (found_table(connection, one, schema) for one in (name, changes))
    if table is None:
        raise InvalidSource(f"our own database has no table {name!r}: switch its entries off yourself")
    ids = list(keys)
    for at in range(0, len(ids), PAGE):
        connection.execute(table.update().where(table.c.id.in_(ids[at : at + PAGE])).values(enabled=False))
    if told is not None:
        connection.execute(told.update().values(last_update=sqlalchemy.func.clock_timestamp()))


def _engine(source: str | None, own_url: str) -> sqlalchemy.Engine:
    try:
        url = read_url(own_url if source is None else source, "the source")
        if url.get_backend_name() in ("postgresql", "postgres"):
            url = normalise_url(url.render_as_string(hide_password=False), "the source")
            arguments = {"connect_timeout": CONNECT_TIMEOUT}
        else:
            arguments = {}
        return sqlalchemy.create_engine(url, connect_args=arguments, hide_parameters=True, poolclass=NullPool)
    except (NoSuchModuleError, ImportError) as error:
        raise InvalidSource(f"the driver of the source's database is not installed: {error}") from None
    except InvalidSetting as error:
        raise InvalidSource(str(error)) from None


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) and value.tzinfo is None else value
