"""Writes our settings into the Celery configuration for `PgBeat(app)`, without making Celery load it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from celery.signals import import_modules

from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.redaction import hide_secret_settings

WORKER = "celery_pgbeat.worker"


class Url(str):
    """A database URL whose repr hides the password; Celery prints it in `celery report`."""

    __slots__ = ()

    def __repr__(self) -> str:
        try:
            return repr(masked(normalise_url(self)))
        except PgBeatError:
            return "'***'"


def configure(app: Any, url: str | None, schema: str | None) -> None:
    """Make the app use our scheduler, and make its workers guard and track jobs.

    Raises:
        InvalidSetting: the URL is no Postgres URL.
        MissingDriver: its driver is not installed.
    """
    hide_secret_settings()
    app.conf.beat_scheduler = "pgbeat"
    if url is not None:
        normalise_url(url)
        app.conf.pgbeat_url = Url(url)
    if schema is not None:
        app.conf.pgbeat_schema = schema
    if app.configured:
        _mask(app)
    app.on_after_configure.connect(_mask, weak=False, dispatch_uid=WORKER)
    # Same effect as an entry in `imports`, whose value is not known yet: imported with the app's task modules.
    import_modules.connect(_import_worker, sender=app, weak=False, dispatch_uid=WORKER)


def _import_worker(**_: Any) -> None:
    import_module(WORKER)


def _mask(sender: Any, **_: Any) -> None:
    url = sender.conf.get("pgbeat_url")
    if isinstance(url, str):
        sender.conf.pgbeat_url = Url(url)
