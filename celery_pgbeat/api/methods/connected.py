"""An app, its settings and its database, which all methods of `PgBeat` use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from celery_pgbeat.api.configure import configure
from celery_pgbeat.declare import Definition, app_timezone, define
from celery_pgbeat.declare.columns import read_instant
from celery_pgbeat.declare.signature import check_call
from celery_pgbeat.errors import PgBeatError, UnknownPeriodicTask
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.api_queries import ApiQueries, Person
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.settings import Settings
from celery_pgbeat.texts.safe_text import type_of

if TYPE_CHECKING:
    from celery import Celery


class Connected:
    """The settings of an app, and the database that they name.

    Args:
        app: the Celery app, the URL, or None.
        url: of the database; None for that of the settings.
        schema: of the database; None for that of the settings.
    """

    def __init__(self, app: Celery | str | None = None, url: str | None = None, schema: str | None = None) -> None:
        if isinstance(app, str):
            if url is not None:
                raise TypeError("PgBeat was given two URLs, as its first argument and as url")
            app, url = None, app
        elif app is not None and not hasattr(app, "conf"):
            raise TypeError(f"app is {type_of(app)}, neither a Celery app nor the URL of a database")
        self._app = app
        self._given = {"pgbeat_url": url, "pgbeat_schema": schema}
        self._settings: Settings | None = None
        self._person: Person | None = None
        self._databases: dict[
            int, Database
        ] = {}  # by process: a child must not use its parent's connections after a fork
        if app is not None:
            configure(app, url, schema)
        elif url is not None:
            normalise_url(url)

    def __repr__(self) -> str:
        settings = self._known_settings()
        url = self._given["pgbeat_url"] if settings is None else settings.url
        schema = self._given["pgbeat_schema"] if settings is None else settings.schema
        app = [] if self._app is None else [repr(self._app.main)]
        return f"PgBeat({', '.join([*app, f'url={url and masked(normalise_url(url))!r}', f'schema={schema!r}'])})"

    @property
    def settings(self) -> Settings:
        """The settings in force, read when they are first needed.

        Raises:
            InvalidSetting: one of them is wrong; names it and its value.
        """
        if self._settings is None:
            self._settings = Settings.from_mapping(self._given if self._app is None else self._app.conf)
        return self._settings

    @property
    def database(self) -> Database:
        """The database of this process; nothing connects before the first statement.

        Raises:
            InvalidSetting: no URL is set.
        """
        process = os.getpid()
        if process not in self._databases:
            # setdefault: if two threads come at once, both get one object. A second pool would never be closed.
            self._databases.setdefault(process, Database(self.settings.required_url, self.settings.schema))
        return self._databases[process]

    @property
    def person(self) -> Person | None:
        """The person that `as_person` named; None if it was made in another way."""
        return self._person

    def close(self) -> None:
        """Close this process's connections; the next statement opens new ones."""
        if (database := self._databases.get(os.getpid())) is not None:
            database.close()

    def _known_settings(self) -> Settings | None:
        """Return the settings if they are right and reading them loads no configuration; otherwise None."""
        if self._settings is None and self._app is not None and not self._app.configured:
            return None
        try:
            return self.settings
        except PgBeatError:
            return None

    @property
    def _queries(self) -> ApiQueries:
        return ApiQueries(self.settings.schema, lambda: self.database, self._person)

    @property
    def _rules(self) -> Rules:
        return Rules(
            timezone=self._timezone,
            on_time=self.settings.on_time,
            lease=self.settings.lease,
            pickup_deadline=self.settings.pickup_deadline,
            min_interval=self.settings.min_interval,
        )

    @property
    def _timezone(self) -> str:
        return self._app_timezone or "UTC"

    @property
    def _app_timezone(self) -> str | None:
        return None if self._app is None else app_timezone(self._app)

    def _aware(self, argument: str, instant: datetime | None) -> datetime | None:
        """Return an instant as an aware datetime; a naive one is read in the app's zone."""
        if instant is not None and read_instant(argument, instant).tzinfo is None:
            return instant.replace(tzinfo=ZoneInfo(self._timezone))
        return instant

    def _row(self, statement: str, name: str, connection: Any) -> Mapping[str, Any]:
        rows = self._queries.run(statement, connection, name=name)
        if not rows:
            raise UnknownPeriodicTask(self._queries.unknown(name, connection))
        return rows[0]

    def _define(self, name: Any, task: Any, schedule: Any, columns: Mapping[str, Any], managed_by: str) -> Definition:
        definition = define(name, task, schedule, columns, self.settings, self._app_timezone, managed_by)
        check_call(definition, self._app)
        return definition
