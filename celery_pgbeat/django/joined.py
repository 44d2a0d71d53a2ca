"""The Python API on Django's connection: what Django's transaction has written is seen, and is committed with it.

`AliasBeat` has connections of its own to the same database, for the dashboard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from celery import current_app
from django.db import Error, connections, transaction

from celery_pgbeat.api import PgBeat
from celery_pgbeat.django.place import alias_url, database_alias, schema
from celery_pgbeat.errors import DatabaseBusy, NotPermitted
from celery_pgbeat.postgres.api_queries import ApiQueries, Person, Row
from celery_pgbeat.postgres.dashboard_queries import DashboardQueries
from celery_pgbeat.postgres.database import BUSY, NO_RIGHT, reason, sqlstate
from celery_pgbeat.settings import Settings
from celery_pgbeat.web.reading import Reader, ReadOnlyDatabase

# What a statement that reads may take. Compiling one takes up to a second if a large table raises its estimated cost.
READING: Mapping[str, str] = {"statement_timeout": "5s", "jit": "off"}


class AliasBeat(PgBeat):
    """The API of the project's Celery app, for the database that Django names."""

    def __init__(self) -> None:
        super().__init__()
        self._app = current_app._get_current_object()  # not by the constructor: that would configure the app

    @property
    def title(self) -> str:
        """What the dashboard is headed with: the name of the app."""
        return str(self._app.main or "pgbeat") if self._app is not None else "pgbeat"

    @property
    def settings(self) -> Settings:
        """The settings of the app, with the database of Django's settings."""
        if self._settings is None:
            conf = {} if self._app is None else self._app.conf
            self._settings = replace(Settings.from_mapping(conf), url=alias_url(), schema=schema())
        return self._settings


class AliasDatabase(ReadOnlyDatabase):
    """Django's connection of this thread, as the statements of the dashboard use a database."""

    def __init__(self) -> None:
        self.schema = schema()
        self.alias = database_alias()

    @property
    def connection(self) -> Any:
        """Django's connection of this thread."""
        return connections[self.alias]

    @property
    def shown_url(self) -> str:
        """The database in words."""
        return f"the alias {self.alias!r}"

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open a transaction, or a savepoint of the one that is open, with the settings of statements that read."""
        with transaction.atomic(using=self.alias), self.connection.cursor() as cursor:
            cursor.execute("select name, current_setting(name) from unnest(%s::text[]) as name", [list(READING)])
            before = dict(cursor.fetchall())
            self._set(cursor, READING)
            yield
            self._set(cursor, before)

    @staticmethod
    def _set(cursor: Any, settings: Mapping[str, str]) -> None:
        """Set these until the transaction ends."""
        given = [list(settings), list(settings.values())]
        cursor.execute(
            "select set_config(name, value, true) from unnest(%s::text[], %s::text[]) as given (name, value)", given
        )

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Run what the user may lack a right for, or what may take too long; then the page goes on."""
        with transaction.atomic(using=self.alias):
            yield

    def translated(self, error: Exception) -> Exception:
        """Return one of our errors in place of one of Django's that may pass by itself, or that a right would mend."""
        origin = error.__cause__
        code = sqlstate(origin) or ""
        if code == NO_RIGHT:
            return NotPermitted(f"The user of {self.shown_url} lacks a right: {reason(origin)}")
        if code.startswith(BUSY):
            return DatabaseBusy(f"Postgres ended a statement of {self.shown_url}: {reason(origin)}")
        return error


class JoinedQueries(ApiQueries):
    """The statements of the API, each on Django's connection."""

    def __init__(self, database: AliasDatabase, person: Person | None = None) -> None:
        super().__init__(database.schema, lambda: database, person)
        self._place = database

    def run(self, name: str, /, connection: Any = None, **parameters: Any) -> list[Row]:
        """Run a statement; as a person in a transaction, because the name ends with it."""
        if self._person is None:
            return super().run(name, connection, **parameters)
        with transaction.atomic(using=self._place.alias):
            return super().run(name, connection or self._place.connection, **parameters)

    def _run(self, name: str, connection: Any, parameters: dict[str, Any]) -> list[Row]:
        try:
            rows = super()._run(name, connection or self._place.connection, parameters)
        except Error as error:
            raise self._place.translated(error) from error
        return [{column: self._aware(value) for column, value in row.items()} for row in rows]

    def _aware(self, value: Any) -> Any:
        """Return an instant as an aware one: with USE_TZ off, some drivers read them as naive ones."""
        if isinstance(value, datetime) and value.tzinfo is None:
            return value.replace(tzinfo=ZoneInfo(self._place.connection.timezone_name))
        return value

    @contextmanager
    def _transaction(self, connection: Any) -> Iterator[Any]:
        if connection is not None:
            yield connection
            return
        with transaction.atomic(using=self._place.alias):
            yield self._place.connection


class JoinedDashboardQueries(DashboardQueries):
    """The statements of the dashboard, each on Django's connection."""

    def __init__(self, database: AliasDatabase) -> None:
        super().__init__(database)
        self._api = JoinedQueries(database)


class JoinedBeat(Reader):
    """The API of the project's Celery app, on Django's connection unless another one is given."""

    def __init__(self) -> None:
        super().__init__(AliasBeat())
        self._joined = AliasDatabase()

    @property
    def database(self) -> AliasDatabase:
        """Django's connection."""
        return self._joined

    @property
    def queries(self) -> JoinedDashboardQueries:
        """The statements of operators and of the dashboard."""
        return JoinedDashboardQueries(self._joined)

    @property
    def _queries(self) -> ApiQueries:
        return JoinedQueries(self._joined, self._person)

    def bound_waits(self) -> None:
        """Bound how long the statements of this transaction may wait for locks, and run."""
        self._queries.run("bound_waits")
