"""Writes our settings into the Celery configuration for `PgBeat(app)`, without making Celery load it."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from celery.app.defaults import DEFAULTS
from celery.signals import beat_init, import_modules

from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.postgres.engine import masked, normalise_url
from celery_pgbeat.settings.our_scheduler import OURS, is_ours
from celery_pgbeat.texts.redaction import hide_secret_settings

logger = logging.getLogger(__name__)
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
    """Make the app use our scheduler unless its configuration names one, and make its workers guard and track jobs.

    A project that moves here from another scheduler calls this long before its old beat stops.

    Raises:
        InvalidSetting: the URL is no Postgres URL.
        MissingDriver: its driver is not installed.
    """
    hide_secret_settings()
    if url is not None:
        normalise_url(url)
        app.conf.pgbeat_url = Url(url)
    if schema is not None:
        app.conf.pgbeat_schema = schema
    if app.configured:
        _complete(app)
    app.on_after_configure.connect(_complete, weak=False, dispatch_uid=WORKER)
    beat_init.connect(_warn_of_another, weak=False, dispatch_uid=WORKER)
    # Same effect as an entry in `imports`, whose value is not known yet: imported with the app's task modules.
    import_modules.connect(_import_worker, sender=app, weak=False, dispatch_uid=WORKER)


def _import_worker(**_: Any) -> None:
    import_module(WORKER)


def _complete(sender: Any, **_: Any) -> None:
    """Set the scheduler, and hide the password of the URL, in a configuration that is loaded."""
    conf = sender.conf
    # By the value too: before Celery 5.7 a name with a prefix does not count as set.
    if conf.beat_scheduler == DEFAULTS["beat_scheduler"] and not conf.value_set_for("beat_scheduler"):
        conf.beat_scheduler = "pgbeat"
    url = conf.get("pgbeat_url")
    if isinstance(url, str):
        conf.pgbeat_url = Url(url)


def _warn_of_another(sender: Any, **_: Any) -> None:
    """Say that a beat that starts is not ours, where the configuration decided that and not the command line."""
    named = sender.app.conf.beat_scheduler
    if sender.scheduler_cls == named and named not in OURS and not is_ours(sender.scheduler):
        logger.warning(
            "This beat runs %r, which beat_scheduler names in the configuration of the app: it sends no row of pgbeat. "
            "Start a beat of pgbeat with -S pgbeat, or remove that setting when the old schedule is not needed any "
            "more: then PgBeat(app) sets it",
            named,
        )
