"""Bring the schema to this package's version, from any number of processes at once.

A schema that is current costs one plain read. Only where it is behind, a process takes the lock and reads the version
again: of ten beats that start on an empty database one migrates and nine wait for it.

`migrations/` has what contains data (tables): numbered, applied once, never changed again. `definitions/` has what can
be made anew at any time (functions, triggers, views, comments), in the order of its `order.txt`. A function that one
statement calls is in the file of that statement, in `sql/` (see statements.py), and counts as a definition too.

Definitions are applied with each migration, and also where the schema is at this package's version but has other
definitions: the schema keeps their checksum. A migration is needed only to drop what `create or replace` cannot
replace, and in a release: packages of one version must agree, or each that starts would replace the other's
definitions by its own.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import NamedTuple

from sqlalchemy import Engine
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from celery_pgbeat.errors import DatabaseBusy, DatabaseUnsuitable, SchemaMissing, SchemaTooNew
from celery_pgbeat.postgres.database import BUSY, sqlstate
from celery_pgbeat.postgres.function_comments import function_comments
from celery_pgbeat.postgres.may_migrate import check_may_migrate
from celery_pgbeat.postgres.statements import checked_schema, filled_in, functions, rendered

logger = logging.getLogger(__name__)

# The oldest package version (as a schema version) that works beside nodes of this schema.
MIN_COMPATIBLE = 1
LOCKED = "55P03"  # SQLSTATE lock_not_available
TRIES = 5  # before a lock that cannot be taken is an error
LOCK_WITHIN = 60.0  # seconds to wait for another process that migrates; after that a beat tries again
LOGGED_AFTER = 2.0  # seconds of that wait before it is logged
HOLDER = """
select activity.pid, activity.usename, activity.application_name
from pg_locks as taken
join pg_stat_activity as activity using (pid)
where taken.granted and taken.pid <> pg_backend_pid()
    and taken.database = (select oid from pg_database where datname = current_database())
    and (taken.locktype = 'advisory' and taken.classid = 0 and taken.objid = %(lock)s and taken.objsubid = 1
        or taken.locktype = 'relation' and taken.relation = to_regclass(%(table)s) and taken.mode <> 'AccessShareLock')
"""
# `create schema if not exists` needs the right to create a schema even if the schema exists.
SCHEMA = """
do $$
begin
    if not exists (select from pg_namespace where nspname = {channel}) then
        create schema {schema};
    end if;
end
$$;
"""
# All other sessions wait behind one that waits for an exclusive lock, so it may not wait for long. Most statements of
# beats lock the tables in this order. A statement that locks them in the other order, or reads a view, may wait for us
# while we wait for it. Then our statement fails first, before Postgres (deadlock_timeout, 1 s) ends the other one.
LOCK = """
set local lock_timeout = '2s';
lock table {schema}.periodic_task in access exclusive mode;
set local lock_timeout = '500ms';
lock table {schema}.active_job in access exclusive mode;
"""


class Version(NamedTuple):
    """The row of `schema_version`; (0, 0, None) if there is no schema yet."""

    version: int
    min_compatible: int
    definitions: str | None = None  # the checksum of what was applied

    @property
    def has_our_definitions(self) -> bool:
        """Whether a schema of this package's version has its functions, triggers and views too."""
        return self.version != latest() or self.definitions == checksum()


def migrations() -> Iterator[tuple[int, str]]:
    """Yield (number, text) of all migrations in order."""
    folder = resources.files("celery_pgbeat.postgres") / "migrations"
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if path.name.endswith(".sql"):
            yield int(path.name[:4]), path.read_text(encoding="utf-8")


def definitions() -> Iterator[tuple[str, str]]:
    """Yield (name, text) of all definitions in the order of `order.txt`."""
    folder = resources.files("celery_pgbeat.postgres") / "definitions"
    for line in (folder / "order.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name = line.split()[0]
        if name == "statements":
            yield from functions()
        else:
            text = (folder / name).read_text(encoding="utf-8")
            yield name.removesuffix(".sql"), text + function_comments(text)


@cache  # each heartbeat calls it, and a package does not change while it runs
def latest() -> int:
    """Return the schema version that this package brings."""
    return max(number for number, _ in migrations())


@cache
def checksum() -> str:
    """Return the checksum of this package's definitions, with the columns and the common parts that they have."""
    texts = "\0".join(text for _, text in definitions())
    return hashlib.sha256(filled_in(texts).encode()).hexdigest()


def current(connection: Connection, schema: str) -> Version:
    """Return the version of the schema in the database, without taking a lock."""
    # Not to_regclass: after the wait for the lock it may still return the result from before.
    found = connection.exec_driver_sql(
        "select exists (select from pg_tables where schemaname = %(schema)s and tablename = 'schema_version')",
        {"schema": checked_schema(schema)},
    ).scalar_one()
    if not found:
        return Version(0, 0)
    versions = "coalesce(max(version), 0), coalesce(max(min_compatible), 0), max(definitions)"
    row = connection.exec_driver_sql(f'select {versions} from "{schema}".schema_version').one()  # noqa: S608
    return Version(*row)


def check(engine: Engine, schema: str) -> Version:
    """Return the schema's version if this package can work with it.

    Raises:
        DatabaseUnsuitable: the database is not in UTF8, or a setting changes the meaning of our values.
        SchemaMissing: there is no schema, or it is older than this package.
        SchemaTooNew: a newer package has made the schema incompatible with this one.
    """
    with engine.connect() as connection:
        _check_settings(connection)
        found = current(connection, schema)
    known = latest()
    if found.min_compatible > known:
        raise SchemaTooNew(
            f"The pgbeat schema {schema!r} is at version {found.version} and needs packages from "
            f"{found.min_compatible} on, this package knows up to {known}: upgrade celery-pgbeat on this node."
        )
    if found.version < known:
        what = f"The pgbeat schema {schema!r} is at version {found.version}, this package needs {known}"
        if found.version == 0:
            what = f"The database has no pgbeat schema {schema!r} yet"
        raise SchemaMissing(f"{what}: run `celery-pgbeat migrate`, or leave pgbeat_auto_migrate on.")
    return found


def _check_settings(connection: Connection) -> None:
    """Refuse a database that cannot store every text, and a connection that reads NULL in an array as a text.

    Another encoding than UTF8 lacks letters that a name, an argument or the error of a task may have: a worker could
    not write that its job has failed. NULL was read as a text before Postgres 8.2; most statements have an array.
    """
    encoding, reads_nulls, role, database = connection.exec_driver_sql(
        "select current_setting('server_encoding'), current_setting('array_nulls')::boolean, "
        "quote_ident(current_user), quote_ident(current_database())"
    ).one()
    if encoding != "UTF8":
        raise DatabaseUnsuitable(
            f"The database {database} has the encoding {encoding}, and celery-pgbeat needs UTF8. Another database of "
            "the same server may have it: `create database pgbeat encoding 'UTF8' locale 'C' template template0`."
        )
    if not reads_nulls:
        connection.invalidate()  # a connection keeps its settings: the next check needs a new one
        connection.engine.dispose()
        raise DatabaseUnsuitable(
            f"array_nulls is off, and celery-pgbeat needs it on: alter role {role} in database {database} set "
            "array_nulls = on"
        )


def migrate(engine: Engine, schema: str = "pgbeat") -> int:
    """Apply what is missing, in one transaction; return how many migrations were applied.

    Definitions that differ from this package's are applied again, even if no migration is missing.

    Raises:
        SchemaTooNew: a newer package has made the schema incompatible with this one.
        DatabaseBusy: another session holds the lock of migrations; the message names it.
        NotPermitted: this user may not do it; the message has the grant.
        DBAPIError: Postgres refused it, or other transactions lock the tables for long.
    """
    with suppress(SchemaMissing):
        if check(engine, schema).has_our_definitions:
            return 0
    for _ in range(TRIES - 1):
        try:
            return _apply(engine, checked_schema(schema))
        except DBAPIError as error:
            if not (sqlstate(error.orig) or "").startswith(BUSY):
                raise
            time.sleep(random.uniform(0.1, 1.0))  # noqa: S311  not all beats at once
    return _apply(engine, checked_schema(schema))


def _take_lock(connection: Connection, schema: str) -> None:
    """Take the lock of migrations, or give up after a while."""
    begun = time.monotonic()
    logged = False
    while not _takes_lock(connection, schema):
        waited = time.monotonic() - begun
        if waited >= LOGGED_AFTER and not logged:
            logged = True
            logger.warning(
                "Waiting to migrate the schema %r: %s", schema, _holder(connection, schema), extra={"action": "migrate"}
            )
        if waited >= LOCK_WITHIN:
            raise DatabaseBusy(
                f"The schema {schema!r} could not be migrated within {LOCK_WITHIN:g} s: "
                f"{_holder(connection, schema)}. Wait until it is done, or end that session with "
                "pg_terminate_backend()."
            )
        time.sleep(random.uniform(0.05, 0.15))  # noqa: S311


def _takes_lock(connection: Connection, schema: str) -> bool:
    """Try to take the lock: that of a table, which only its owner can take, or an advisory lock if there is none yet.

    Every user of the database can take the advisory lock, and delay the first migration by it, but no other.
    """
    if not current(connection, schema).version:
        lock = {"lock": _advisory_lock(schema)}
        if not connection.exec_driver_sql("select pg_try_advisory_xact_lock(%(lock)s)", lock).scalar_one():
            return False
        if not current(connection, schema).version:
            return True
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(f'lock table "{schema}".schema_version in exclusive mode nowait')
    except DBAPIError as error:
        if sqlstate(error.orig) != LOCKED:
            raise
        return False
    return True


def _advisory_lock(schema: str) -> int:
    return zlib.crc32(f"celery-pgbeat migrate {schema}".encode())


def _holder(connection: Connection, schema: str) -> str:
    """Return which session holds the lock; its client may have given any name."""
    parameters = {"lock": _advisory_lock(schema), "table": f'"{schema}".schema_version'}
    holder = connection.exec_driver_sql(HOLDER, parameters).first()
    if holder is None:
        return "another process has just done so"
    return f"the session {holder.pid} of {holder.usename!r} ({holder.application_name or 'unnamed'!r}) holds the lock"


def _apply(engine: Engine, schema: str) -> int:
    transactional = engine.execution_options(isolation_level="READ COMMITTED")
    with transactional.begin() as connection:
        check_may_migrate(connection, schema)
        _take_lock(connection, schema)
        known = current(connection, schema)
        found = known.version
        missing = [(number, text) for number, text in migrations() if number > found]
        if not missing and known.has_our_definitions:
            return 0
        # Without parameters a driver takes many statements in one text and does not read %.
        plainly = {"no_parameters": True}
        texts = [LOCK] if found else [SCHEMA]
        for text in (*texts, *(text for _, text in missing), *(text for _, text in definitions())):
            connection.exec_driver_sql(rendered(text, schema), execution_options=plainly)
        connection.exec_driver_sql(f'delete from "{schema}".schema_version')  # noqa: S608
        connection.exec_driver_sql(
            f'insert into "{schema}".schema_version (version, min_compatible, definitions) '  # noqa: S608
            "values (%(version)s, %(min_compatible)s, %(definitions)s)",
            {"version": latest(), "min_compatible": MIN_COMPATIBLE, "definitions": checksum()},
        )
    if not missing:
        logger.info("Brought the functions and views of the schema %r up to date", schema, extra={"action": "migrate"})
    return len(missing)
