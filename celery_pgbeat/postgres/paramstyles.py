"""The parameters of a statement, in the style of the driver under a SQLAlchemy connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celery_pgbeat.postgres.statements import PARAMETER


def in_style_of(dialect: Any, sql: str, parameters: Mapping[str, Any]) -> tuple[str, Any]:
    """Return a statement and its parameters as the dialect's driver takes them.

    The files have `%(name)s`, which psycopg2 and psycopg read. asyncpg reads `$1`.

    Raises:
        TypeError: the driver is none of these.

    Example:
        >>> class Asyncpg:
        ...     driver = "asyncpg"
        >>> in_style_of(Asyncpg, "select %(name)s, %(at)s, %(name)s", {"at": 7, "name": "x"})
        ('select $1, $2, $1', ('x', 7))
    """
    if dialect.driver == "asyncpg":
        return _numbered(sql, parameters)
    if dialect.paramstyle != "pyformat":
        raise TypeError(
            f"connection uses the driver {dialect.driver}: pass one of psycopg2, psycopg or asyncpg, on Postgres"
        )
    return sql, dict(parameters) or None


def _numbered(sql: str, parameters: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    order = {name: number for number, name in enumerate(dict.fromkeys(PARAMETER.findall(sql)), 1)}
    return PARAMETER.sub(lambda found: f"${order[found.group(1)]}", sql), tuple(parameters[name] for name in order)
