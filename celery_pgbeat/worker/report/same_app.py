"""Warns once that the schema serves another app than this worker's."""

from __future__ import annotations

import logging
from typing import Any

from celery_pgbeat.postgres.worker_queries import WorkerQueries
from celery_pgbeat.settings.app_name import app_name

EVERY = 60.0  # seconds between two checks; the first is made at the start
SECOND = (
    "This worker is of the app %r, and the schema %r serves the app %r. If these are two apps, give %r a schema of its "
    "own: pgbeat_schema"
)

logger = logging.getLogger(__name__)


class SameApp:
    """The periodic duty that compares the name of the worker's app with that of the beats.

    Apps without a name are not compared, as in the beat.
    """

    every = EVERY

    def __init__(self, app: Any, schema: str) -> None:
        self._name = app_name(app)
        self._schema = schema
        self._warned_of: str | None = None

    def run(self, queries: WorkerQueries) -> None:
        """Read which app's beats have the schema; warn if it is another one than before, and not this worker's."""
        if self._name is None:
            return
        first = next(iter(queries.apps()), self._name)
        if first not in (self._name, self._warned_of):
            logger.warning(SECOND, self._name, self._schema, first, self._name, extra={"action": "start"})
        self._warned_of = first

    def shutdown(self, queries: WorkerQueries) -> None:
        """Do nothing."""
