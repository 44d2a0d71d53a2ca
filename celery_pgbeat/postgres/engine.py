"""From a URL to an engine: the driver that is installed, autocommit, and connections that notice a dead network."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from typing import Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError

from celery_pgbeat.errors import InvalidSetting, MissingDriver
from celery_pgbeat.texts.plain_json import read_json
from celery_pgbeat.texts.redaction import ENCODED

DRIVERS = ("psycopg2", "psycopg")

# libpq waits forever by default. A beat that is cut off without a reset must notice it before its lease ends.
TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 5,  # seconds; a host that drops packets is given up after this
    "keepalives_idle": 5,  # seconds of silence before the first probe
    "keepalives_interval": 2,  # seconds between probes
    "keepalives_count": 3,  # probes without an answer: the connection is dead, 11 s after the last packet
    "tcp_user_timeout": 10_000,  # milliseconds that sent data may stay unacknowledged (Linux)
    "application_name": "celery-pgbeat",
    "client_encoding": "utf8",  # a role may have another one, which lacks letters that names have
}

# What follows user and password, as SQLAlchemy reads a URL: the password ends at its first @.
BEHIND_PASSWORD = re.compile(r"[\w+]+://[^:/]*:[^@]*@(.*)", re.DOTALL)
MAY_HAVE_AT = re.compile(r"(user|password|host|dbname|options|passfile|(fallback_)?application_name|ssl\w+)=")


def normalise_url(url: str, what: str = "pgbeat_url") -> URL:
    """Return the URL with the driver that will be used; errors call it `what`.

    `postgresql://` (and `postgres://`) becomes psycopg2 where that is importable, else psycopg 3, whatever
    SQLAlchemy's own default is; a URL that names its driver keeps it.

    Raises:
        InvalidSetting: it is no Postgres URL. The message never repeats the URL: it may contain a password.
        MissingDriver: the driver is not installed.

    Example:
        >>> normalise_url("postgresql://localhost/shop").drivername in ("postgresql+psycopg2", "postgresql+psycopg")
        True
    """
    parsed = read_url(url, what)
    backend, _, driver = parsed.drivername.partition("+")
    if backend not in ("postgresql", "postgres"):
        raise InvalidSetting(f"{what} is for {backend!r}; celery-pgbeat needs Postgres: postgresql://host/database")
    installed = [name for name in DRIVERS if importlib.util.find_spec(name) is not None]
    if driver and driver not in DRIVERS:
        raise InvalidSetting(f"{what} names the driver {driver!r}; celery-pgbeat works with psycopg2 and psycopg")
    if (driver and driver not in installed) or not installed:
        wanted = driver or "psycopg2"
        package = "psycopg2-binary" if wanted == "psycopg2" else "psycopg[binary]"
        raise MissingDriver(f"The Postgres driver {wanted} is not installed: pip install '{package}'")
    return parsed.set(drivername=f"postgresql+{driver or installed[0]}")


def read_url(text: str, what: str) -> URL:
    """Read the URL of any database; white space around it, as files of secrets have it, does not count.

    Args:
        text: the URL.
        what: what to call it in an error.

    Raises:
        InvalidSetting: it is none. The message never repeats it: it may contain a password.
    """
    text = text.strip()
    if text[:1] in ("'", '"'):
        raise InvalidSetting(f"{what} has quotes around it: write it without them")
    if has_stray_at(text):
        raise InvalidSetting(f"{what} has more than one @: {ENCODED}")
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise InvalidSetting(
            f"{what} is not a database URL; write it as postgresql://user:password@host:5432/database"
        ) from None


def has_stray_at(url: str) -> bool:
    """Return whether the URL has an @ where only the rest of a password can be: it would be shown, and looked up.

    Example:
        >>> has_stray_at("postgresql://shop:s3cret@Part@localhost/shop"), has_stray_at("postgresql://a@corp:x@localhost")
        (True, False)
    """
    found = BEHIND_PASSWORD.match(url)
    if found is None:
        return False
    place, _, query = found[1].partition("?")
    return "@" in place or any("@" in part and not MAY_HAVE_AT.match(part) for part in query.split("&"))


def create_engine(url: str) -> Engine:
    """Make an engine of a few autocommitting connections; nothing connects yet.

    No pre-ping: it would cost one round trip for each statement and prove nothing about the next one. No statement
    relies on session settings: behind PgBouncer in transaction mode they would belong to another client. So no result
    may depend on one: durations come as numbers (durations.py), and instants as psycopg2 has Postgres write them, or in
    binary.
    """
    parsed = normalise_url(url)
    arguments = dict(TIMEOUTS)
    if parsed.get_driver_name() == "psycopg":
        arguments["prepare_threshold"] = None  # prepared statements do not survive PgBouncer's transaction mode
        arguments["cursor_factory"] = _binary_cursor()
    arguments = {name: value for name, value in arguments.items() if name not in parsed.query}
    engine = sqlalchemy.create_engine(
        # Its errors would show the parameters, and with them people's arguments.
        parsed,
        hide_parameters=True,
        isolation_level="AUTOCOMMIT",
        pool_size=2,
        max_overflow=8,
        pool_timeout=10,
        connect_args=arguments,
        json_deserializer=read_json,
    )
    event.listen(engine, "connect", _own_settings)
    return engine


def _own_settings(connection: Any, _: object) -> None:
    """Give a new connection two settings, unless a pooler lends it to others as well.

    `jit`: our statements take milliseconds; compiling one takes up to a second if a large table raises its estimated
    cost. `idle_session_timeout`, from Postgres 14 on: a connection that listens is idle for as long as nothing happens.

    Behind a pooler the process id that the driver knows is not that of the backend. There the functions that each tick,
    each job and each heartbeat call still have `jit = off` themselves.
    """
    before, connection.autocommit = connection.autocommit, True
    with connection.cursor() as cursor:
        cursor.execute(
            """
            select set_config('jit', 'off', false), case
                when current_setting('idle_session_timeout', true) is not null
                then set_config('idle_session_timeout', '0', false)
            end
            where pg_backend_pid() = %s
            """,
            (connection.info.backend_pid,),
        )
    connection.autocommit = before


def reading_binary(cursor: Any) -> Any:
    """Have a cursor of psycopg 3 read results in binary, so that no DateStyle matters; return it, of any driver.

    One that puts the parameters into the text itself cannot.
    """
    if hasattr(cursor, "format"):
        from psycopg import ClientCursor, pq

        if not isinstance(cursor, ClientCursor):
            cursor.format = pq.Format.BINARY
    return cursor


@cache
def _binary_cursor() -> type:
    """Return psycopg 3's cursor, reading results in binary: as text it reads instants in few DateStyles."""
    import psycopg

    class BinaryCursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **given: Any) -> Any:
            # Without parameters a text may be several statements (a migration is): these have no results.
            return super().execute(query, params, **{"binary": params is not None, **given})

    return BinaryCursor


def masked(url: URL) -> str:
    """Return the URL with `***` for the password, in the URL or among its parameters."""
    query = {name: "***" if "password" in name else value for name, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)
