"""What an app's code declares, read as a beat reads it; but what a beat only logs is an error here."""

from __future__ import annotations

from typing import cast

from celery import Celery

from celery_pgbeat.api import PgBeat
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings


def strict_code(app: Celery, settings: Settings, database: Database | None = None) -> CodeSchedules:
    """Return the declarations of an app; without a database they can only be read.

    A declaration that a beat would log and leave out raises `InvalidPeriodicTask` when it is read.
    """
    # As in a starting beat: a task module that is not imported has declared nothing.
    app.loader.import_default_modules()
    return CodeSchedules(app, cast(Database, database), settings, strict=True)


def app_of(source: Celery | PgBeat) -> Celery:
    """Return the Celery app that is meant.

    Raises:
        TypeError: it is none, or a PgBeat without one.
    """
    app = source._app if isinstance(source, PgBeat) else source
    if not isinstance(app, Celery):
        raise TypeError(f"{source!r} is no Celery app, nor a PgBeat that was made with one")
    return app
