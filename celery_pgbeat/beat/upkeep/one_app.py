"""One schema serves one app: beats of a second app send nothing while beats of the first are alive.

Beats of two apps in one schema would send each other's tasks, each to its own broker, where no worker knows them. So
the app that came first has the schema. When its beats have been silent for `pgbeat_dead_after`, those of the other take
over: an app may be renamed, also in a rolling deploy, and nothing is lost. When they come back, the others stop again.

An app is its name, `app.main`: beats of several versions or deployments of one name are one app. An app without a name,
or called `__main__`, could be any app, so this check is left out for it.
"""

from __future__ import annotations

import logging
from typing import Any

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.errors import SchemaTaken
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from celery_pgbeat.settings.app_name import app_name

logger = logging.getLogger(__name__)

TAKEN = (
    "The schema {schema!r} serves the app {first!r}, and this beat is of the app {ours!r}: it sends nothing while "
    "beats of {first!r} live. Give it a schema of its own: pgbeat_schema = {ours!r}. If the app was renamed, stop its "
    "beats of the old name: this one takes over {dead_after:g} s after the last of them."
)
TAKEN_OVER = (
    "The beats of the app %r, which the schema %r served, are gone: beats of the app %r take over all its rows. If "
    "these are two apps, give one of them a schema of its own: pgbeat_schema"
)
SECOND = (
    "Beats of another app, %r, use the schema %r, which serves this app, %r. They send nothing while beats of this one "
    "live. Give %r a schema of its own: pgbeat_schema"
)


class OneApp:
    """Checks, with each heartbeat, whether the schema serves this beat's app.

    Args:
        app: the Celery app.
        database: where the schema is.
        settings: the app's.
    """

    def __init__(self, app: Any, database: Database, settings: Settings) -> None:
        self._name = app_name(app)
        self._database = database
        self._settings = settings
        self._first: str | None = None  # the app that has the schema, while this one has not
        self._others: frozenset[str] = frozenset()  # apps that came later, and are named in the log already
        self._check_at = 0.0

    def check(self) -> None:
        """Record that a beat of this app is alive, unless that was done a moment ago.

        Raises:
            SchemaTaken: the schema serves another app, whose beats are alive.
            DatabaseUnavailable: Postgres is out of reach.
        """
        if self._name is None or boottime() < self._check_at:
            return
        rows = self._database.run("announce_app", app=self._name, dead_after=self._settings.dead_after.total_seconds())
        first = next((row.name for row in rows if row.is_first), None)
        if first is not None:
            self._first = first
            raise SchemaTaken(
                TAKEN.format(
                    schema=self._settings.schema,
                    first=first,
                    ours=self._name,
                    dead_after=self._settings.dead_after.total_seconds(),
                )
            )
        self._check_at = boottime() + self._settings.heartbeat_every.total_seconds()
        self._log_changes(frozenset(row.name for row in rows))

    def _log_changes(self, others: frozenset[str]) -> None:
        schema = self._settings.schema
        if self._first is not None:
            logger.warning(TAKEN_OVER, self._first, schema, self._name, extra={"action": "start"})
            self._first = None
        for other in sorted(others - self._others):
            logger.warning(SECOND, other, schema, self._name, other, extra={"action": "start"})
        self._others = others
