"""What an app's code declares, read as a beat reads it, but strictly: what a beat only logs is an error here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from celery import Celery

from celery_pgbeat.api import PgBeat
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings


class StrictCode(CodeSchedules):
    """The declarations of one app; without a database they can only be read."""

    def __init__(self, app: Celery, settings: Settings, database: Database | None = None) -> None:
        super().__init__(app, cast(Database, database), settings)
        # As a starting beat does: a task module that nobody has imported has declared nothing.
        app.loader.import_default_modules()

    @property
    def records(self) -> Mapping[str, Mapping[str, Any]]:
        """The columns of each row, as JSON has them.

        Raises:
            InvalidPeriodicTask: a declaration is wrong.
        """
        return self._code.records

    @property
    def running_first(self) -> Sequence[str]:
        """The rows that run at once when they are new."""
        return self._code.running_first

    def _refuse(self, name: str, error: Exception, *_: Any) -> NoReturn:
        raise InvalidPeriodicTask(f"the periodic task {name!r} in code is refused: {error}") from error


def app_of(source: Celery | PgBeat) -> Celery:
    """Return the Celery app that is meant.

    Raises:
        TypeError: it is none, or a PgBeat without one.
    """
    app = source._app if isinstance(source, PgBeat) else source
    if not isinstance(app, Celery):
        raise TypeError(f"{source!r} is no Celery app, nor a PgBeat that was made with one")
    return app
