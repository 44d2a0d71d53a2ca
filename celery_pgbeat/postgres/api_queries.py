"""The statements of the Python API, the CLI and the declarations in code.

Alone, each statement commits by itself. With `connection`, of whatever kind, it joins the caller's transaction, which
the caller commits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError, TimeoutError

from celery_pgbeat.errors import (
    BackfillOver,
    GroupFinished,
    GroupInUse,
    InvalidPeriodicTask,
    JobInTheWay,
    JobNotCancellable,
    JobNotResendable,
    JobNotRetriable,
    NoDecisionNeeded,
    NothingToRetry,
    PeriodicTaskInUse,
    SchemaMissing,
    UnknownBackfill,
    UnknownGroup,
    UnknownJob,
    UnknownPeriodicTask,
    WorkForOthers,
    WorkNotOpen,
    WorkTaken,
)
from celery_pgbeat.postgres.database import Database, sqlstate
from celery_pgbeat.postgres.durations import as_written, with_durations
from celery_pgbeat.postgres.engine import reading_binary
from celery_pgbeat.postgres.paramstyles import in_style_of
from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.texts.safe_text import type_of

# What our own functions raise, by SQLSTATE, and by the table that the error names, if it names one.
MEANINGS: dict[str, type[Exception]] = {
    "P0002": UnknownPeriodicTask,
    "42704": UnknownBackfill,
    "55000": BackfillOver,
    "55006": JobInTheWay,
}
MEANINGS_OF_TABLE: dict[tuple[str, str | None], type[Exception]] = {
    ("P0002", "task_group"): UnknownGroup,
    ("P0002", "job"): UnknownJob,
    ("55000", "task_group"): GroupFinished,
    ("55000", "group_failure"): NothingToRetry,
    ("55006", "task_group"): GroupInUse,
    ("55006", "dependency"): PeriodicTaskInUse,
    ("55000", "job"): JobNotRetriable,
    ("55000", "active_job"): NoDecisionNeeded,
    ("55000", "open_work"): WorkNotOpen,
    ("55000", "finished_job"): JobNotCancellable,
    ("55000", "broker"): JobNotResendable,
    ("55006", "open_work"): WorkTaken,
    ("55P03", "open_work"): WorkTaken,
    ("42501", "open_work"): WorkForOthers,
}

Record = Mapping[str, Any]
Row = dict[str, Any]


class Person(NamedTuple):
    """The person that an application names, and why, as the table of changes has it."""

    who: str
    reason: str | None = None


class ApiQueries:
    """The statements of people and of their code, for one schema."""

    def __init__(self, schema: str, database: Callable[[], Database], person: Person | None = None) -> None:
        self._schema = schema
        self._database = database
        self._person = person

    def schedule(
        self,
        definitions: Iterable[Record],
        keeping_next_run: Collection[str] = (),
        running_first: Collection[str] = (),
        taking_over: Collection[str] = (),
        connection: Any = None,
    ) -> list[Row]:
        """Declare periodic tasks, all or none; return the rows that were new or differed."""
        arguments = {
            "definitions": json.dumps([as_written(definition) for definition in definitions]),
            "running_first": list(running_first),
            "taking_over": list(taking_over),
        }
        if not keeping_next_run:
            return self.run("schedule", connection, **arguments)
        with self._transaction(connection) as joined:
            kept = self.run("next_runs", joined, names=list(keeping_next_run))
            rows = {row["name"]: row for row in self.run("schedule", joined, **arguments)}
            again = self.run(
                "keep_next_run",
                joined,
                names=[row["name"] for row in kept],
                next_run_ats=[row["next_run_at"] for row in kept],
            )
        return list({**rows, **{row["name"]: row for row in again}}.values())

    def update(self, name: str, changes: Record, connection: Any = None) -> list[Row]:
        """Change columns of a periodic task; return the row if anything differed."""
        return self.run("update", connection, name=name, changes=json.dumps(as_written(changes)))

    def unschedule(self, name: str, connection: Any = None) -> bool:
        """Remove a periodic task; return whether there was one."""
        return bool(self.run("unschedule", connection, name=name)[0]["removed"])

    def trigger_many(self, names: Collection[str], force: bool, connection: Any = None) -> list[Row]:
        """Start a job of each of these periodic tasks now; return those that existed, each with its job."""
        with self._transaction(connection) as joined:
            self.run("lock_rows", joined, names=list(names))
            return self.run("trigger_many", joined, names=list(names), force=force)

    def similar_name(self, name: str, connection: Any = None) -> str | None:
        """Return the name that may have been meant."""
        found: str | None = self.run("similar_name", connection, name=name)[0]["name"]
        return found

    def unknown(self, name: str, connection: Any = None) -> str:
        """Return a sentence: there is no periodic task of this name, and why, or which one may have been meant."""
        return str(self.run("unknown", connection, name=name)[0]["sentence"])

    def run(self, name: str, /, connection: Any = None, **parameters: Any) -> list[Row]:
        """Run the statement `sql/<name>.sql`; return its rows by column.

        Raises:
            DatabaseUnavailable: Postgres is out of reach; with `connection` the driver's own error instead.
            InvalidPeriodicTask, UnknownPeriodicTask, UnknownGroup, JobInTheWay, UnknownJob, JobNotRetriable,
                NoDecisionNeeded, WorkTaken, WorkNotOpen, WorkForOthers, JobNotCancellable, JobNotResendable,
                UnknownBackfill, BackfillOver, SchemaMissing: what Postgres refused.
            TypeError: a person is named, and the connection commits each statement.
        """
        if self._person is None:
            return self._run(name, connection, parameters)
        with self._transaction(connection) as joined:
            former = self._name(self._person, joined)
            rows = self._run(name, joined, parameters)
            if connection is not None:  # what else the caller does there is not this person's
                self._run("name_person", joined, former)
        return rows

    def _name(self, person: Person, connection: Any) -> Row:
        """Name a person in a transaction; return the one that was named before."""
        (row,) = self._run("name_person", connection, person._asdict())
        (named,) = self._run("named_person", connection, {})
        if named["who"] != person.who:
            raise TypeError(
                "connection commits each statement (autocommit): begin a transaction, in which a person can be named"
            )
        return {"who": row["former_who"], "reason": row["former_reason"]}

    def _run(self, name: str, connection: Any, parameters: dict[str, Any]) -> list[Row]:
        try:
            if connection is None:
                return [
                    with_durations(zip(row._fields, row, strict=True))
                    for row in self._database().run(name, **parameters)
                ]
            return _joined(connection, statement(name, self._schema), parameters)
        except Exception as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            # Without the cause: SQLAlchemy's error would show the parameters, which may be secret.
            raise refusal from None

    @contextmanager
    def _transaction(self, connection: Any) -> Iterator[Any]:
        if connection is not None:
            yield connection
            return
        database = self._database()
        transactional = database.engine.execution_options(isolation_level="READ COMMITTED")
        with translating(database), transactional.begin() as own:
            yield own

    def _refusal(self, error: Exception) -> Exception | None:
        """Return our own error for a SQLSTATE, None where we have none."""
        origin: Any = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
        if sqlstate(origin) is None:
            origin = error.__cause__  # Django's connection raises errors of its own for the driver's
        code = sqlstate(origin)
        if code is None:
            return None
        fields = _fields_of(origin)
        message = fields.message or str(origin)
        if fields.hint:  # written for SQL
            stop = "" if message.endswith((".", "?")) else "."
            message = f"{message}{stop} {fields.hint.replace(' => true', '')}"
        meaning = MEANINGS_OF_TABLE.get((code, fields.table)) or MEANINGS.get(code)
        if meaning is not None:
            return meaning(message)
        if code == "22023" or code.startswith("23"):
            return InvalidPeriodicTask(message)
        if code in ("3F000", "42P01", "42883", "42703"):
            return SchemaMissing(
                f"The database lacks the pgbeat schema {self._schema!r}, or has an older one: run `celery-pgbeat "
                f"migrate` ({message})"
            )
        return None


class ErrorFields(NamedTuple):
    """The fields of an error of Postgres; None for a field that it does not have."""

    message: str | None
    hint: str | None
    table: str | None


def _fields_of(origin: Any) -> ErrorFields:
    """Return the fields of a driver's error: they are in `diag`, or with asyncpg in the error that caused it."""
    diagnostics = getattr(origin, "diag", None)
    if diagnostics is not None:
        return ErrorFields(diagnostics.message_primary, diagnostics.message_hint, diagnostics.table_name)
    own = origin.__cause__
    return ErrorFields(getattr(own, "message", None), getattr(own, "hint", None), getattr(own, "table_name", None))


@contextmanager
def translating(database: Database) -> Iterator[None]:
    """Raise DatabaseUnavailable in place of an error of the engine that may pass by itself."""
    try:
        yield
    except (DBAPIError, TimeoutError) as error:
        raise database.translated(error) from error


def _joined(connection: Any, sql: str, parameters: dict[str, Any]) -> list[Row]:
    """Run a statement on the caller's SQLAlchemy connection or session, or on a driver's own connection."""
    kind = type(connection)
    if kind.__name__.startswith("Async") or kind.__module__.startswith("asyncpg"):
        raise TypeError(
            f"connection is {type_of(connection)} of {kind.__module__.partition('.')[0]}, which is asynchronous: pass "
            f"SQLAlchemy's synchronous session, inside `await session.run_sync(...)`"
        )
    if hasattr(connection, "get_bind"):
        connection = connection.connection()
    if hasattr(connection, "exec_driver_sql"):
        result = connection.exec_driver_sql(*in_style_of(connection.dialect, sql, parameters))
        return [with_durations(zip(row._fields, row, strict=True)) for row in result]
    if not hasattr(connection, "cursor"):
        raise TypeError(
            f"connection is {type_of(connection)}, not a SQLAlchemy connection or session nor one of psycopg's"
        )
    cursor = reading_binary(connection.cursor())
    try:
        cursor.execute(sql, parameters)
        columns = [column[0] for column in cursor.description]
        return [
            with_durations(row.items() if isinstance(row, Mapping) else zip(columns, row, strict=True))
            for row in cursor
        ]
    finally:
        cursor.close()
