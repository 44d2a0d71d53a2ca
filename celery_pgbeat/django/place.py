"""Where the schedule is: the database by its alias in DATABASES, and the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import URL

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.statements import checked_schema
from celery_pgbeat.settings.environment import variable

# What Django and psycopg read from OPTIONS themselves; all else is libpq's. We take `assume_role` too.
NOT_LIBPQ = frozenset(
    (
        *("assume_role", "client_encoding", "connection_factory", "context", "cursor_factory", "isolation_level"),
        *("pool", "prepare_threshold", "row_factory", "server_side_binding"),
    )
)


def database_url(database: Mapping[str, Any]) -> str:
    """Return the URL of one of Django's databases, for CELERY_PGBEAT_URL.

    Args:
        database: an entry of DATABASES.

    Raises:
        InvalidSetting: it is no Postgres; names its engine.

    Example:
        >>> database_url({"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "USER": "ann", "PASSWORD": "a@b"})
        'postgresql://ann:a%40b@/shop'
    """
    engine = str(database.get("ENGINE", ""))
    if engine.rpartition(".")[2] in ("sqlite3", "mysql", "oracle", "dummy", ""):
        raise InvalidSetting(
            f"The database has the engine {engine!r}, and celery-pgbeat needs Postgres: django.db.backends.postgresql"
        )
    query = {
        name: str(value)
        for name, value in (database.get("OPTIONS") or {}).items()
        if name not in NOT_LIBPQ and value is not None
    }
    if role := (database.get("OPTIONS") or {}).get("assume_role"):
        # What Django does with SET ROLE after it has connected.
        escaped = re.sub(r"([\\\s])", r"\\\1", str(role))
        query["options"] = f"{query.get('options', '')} -c role={escaped}".strip()
    host, port = str(database.get("HOST") or ""), _ports(database)
    if host.startswith("/") or "," in host + port:  # the folder of a socket, or several: they have no place in a URL
        query |= {name: value for name, value in (("host", host), ("port", port)) if value}
        host = port = ""
    return URL.create(
        "postgresql",
        username=str(database.get("USER") or "") or None,
        password=str(database.get("PASSWORD") or "") or None,
        host=host or None,
        port=int(port) if port else None,
        database=str(database.get("NAME") or "") or None,
        query=query,
    ).render_as_string(hide_password=False)


def _ports(database: Mapping[str, Any]) -> str:
    """Return the port, or that of each host; one alone is that of all hosts."""
    hosts = str(database.get("HOST") or "").split(",")
    ports = [port.strip() for port in str(database.get("PORT") or "").split(",")]
    if not all(port == "" or port.isdecimal() for port in ports) or len(ports) not in (1, len(hosts)):
        raise InvalidSetting(
            f"The database has the HOST {database.get('HOST')!r} and the PORT {database.get('PORT')!r}: "
            "write one number, or one for each host"
        )
    if ports == [""]:
        return ""
    return ",".join(ports if len(ports) > 1 else ports * len(hosts))


def database_alias() -> str:
    """Return the alias of the database that has the schedule."""
    from django.conf import settings

    return str(getattr(settings, "PGBEAT_DATABASE", "default"))


def alias_url() -> str:
    """Return the URL of that database as it is now: Django's tests give it another name.

    Raises:
        InvalidSetting: it is no Postgres.
    """
    from django.db import connections

    return database_url(connections[database_alias()].settings_dict)


def schema() -> str:
    """Return the schema, by the setting of the Celery app in Django's settings.

    Raises:
        InvalidSetting: it is no name of a schema.
    """
    from django.conf import settings

    given = getattr(settings, "CELERY_PGBEAT_SCHEMA", None) or variable("PGBEAT_SCHEMA")
    return checked_schema(str(given or "pgbeat"))


def table(name: str) -> str:
    """Return the name of a table or view for Django, which leaves a quoted name as it is."""
    return f'"{schema()}"."{name}"'
