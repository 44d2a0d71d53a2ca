"""What `manage.py check` says of a project: what is missing, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from celery import current_app
from django.apps import apps
from django.conf import settings
from django.core import checks
from django.db import Error, connections

from celery_pgbeat import PgBeat
from celery_pgbeat.django.fixtures import LABEL
from celery_pgbeat.django.joined import AliasBeat
from celery_pgbeat.django.place import alias_url, database_alias, schema
from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError, SchemaMissing
from celery_pgbeat.postgres import migrate
from celery_pgbeat.postgres.engine import normalise_url
from celery_pgbeat.settings import Settings
from celery_pgbeat.settings.our_scheduler import OURS

FALLBACK = "default"  # the name of the app that Celery makes if there is none
URL_LINE = 'CELERY_PGBEAT_URL = database_url(DATABASES["{}"]), from celery_pgbeat.django'


def register() -> None:
    """Have Django run the checks. What needs the database runs with `check --database` and before `migrate`."""
    checks.register(check_project)
    checks.register(check_schema, checks.Tags.database)


def check_project(**_: Any) -> list[checks.CheckMessage]:
    """Check the settings, without a connection."""
    return [*_database(), *(_app() if not list(_database()) else ())]


def _database() -> Iterator[checks.CheckMessage]:
    alias = database_alias()
    if alias not in connections.databases:
        yield checks.Error(
            f"PGBEAT_DATABASE is {alias!r}, which is not in DATABASES.",
            hint=f"Name one of {', '.join(sorted(connections.databases))}.",
            id="pgbeat.E001",
        )
        return
    vendor = connections[alias].vendor
    if vendor != "postgresql":
        yield checks.Error(
            f"The database {alias!r} is {vendor}, and celery-pgbeat needs Postgres.",
            hint="Name the alias of a Postgres in PGBEAT_DATABASE; the models of other apps may stay where they are.",
            id="pgbeat.E002",
        )
        return
    try:
        schema()
        alias_url()
    except PgBeatError as error:
        yield checks.Error(str(error), id="pgbeat.E003")
    if not settings.USE_TZ:
        yield checks.Warning(
            "USE_TZ is off: the admin shows instants on the clocks of TIME_ZONE, without saying so.",
            hint="Set USE_TZ = True. Schedules have time zones of their own and are not affected.",
            id="pgbeat.W001",
        )


def _app() -> Iterator[checks.CheckMessage]:
    app = current_app._get_current_object()
    if app.main in (None, FALLBACK) and app.conf.beat_scheduler not in OURS:
        yield checks.Warning(
            "No Celery app is loaded, so the admin does not know its settings.",
            hint="Import it in the __init__.py of the project, as Celery's guide for Django says.",
            id="pgbeat.W002",
        )
        return
    try:
        known = Settings.from_mapping(app.conf)
    except PgBeatError as error:
        yield checks.Error(f"The configuration of the Celery app {app.main!r} is wrong: {error}", id="pgbeat.E003")
        return
    if app.conf.beat_scheduler not in OURS:
        yield checks.Warning(
            f"beat_scheduler of the Celery app {app.main!r} is {app.conf.beat_scheduler!r}, so its beats use another "
            "schedule.",
            hint='Set CELERY_BEAT_SCHEDULER = "pgbeat"; or remove it, and call PgBeat(app) where the app is made. '
            "While the old beat still sends, leave it, and start beats of pgbeat with -S pgbeat.",
            id="pgbeat.W003",
        )
    yield from _place(known)


def _place(known: Settings) -> Iterator[checks.CheckMessage]:
    """Compare where beats and workers look with where the admin looks."""
    alias = database_alias()
    if known.url is None:
        yield checks.Warning(
            f"{known.without_url}: beats and workers do not know the database.",
            hint=f"In the settings: {URL_LINE.format(alias)}.",
            id="pgbeat.W004",
        )
    elif _same_place(known.url) != _same_place(apps.get_app_config(LABEL).url or alias_url()):
        yield checks.Warning(
            f"pgbeat_url names another database than {alias!r}, so the admin shows another schedule than beats use.",
            hint=f"In the settings: {URL_LINE.format(alias)}.",
            id="pgbeat.W005",
        )
    if known.schema != schema():
        yield checks.Error(
            f"pgbeat_schema of the Celery app is {known.schema!r}, and the models read {schema()!r}.",
            hint="Set CELERY_PGBEAT_SCHEMA in Django's settings, and not in the code of the app.",
            id="pgbeat.E004",
        )


def _same_place(url: str) -> tuple[Any, ...]:
    parsed = normalise_url(url)
    host = parsed.query.get("host", parsed.host) or "localhost"
    return host, int(parsed.port or 5432), parsed.database


def check_schema(databases: Any = None, **_: Any) -> list[checks.CheckMessage]:
    """Check that the schema is there, and at the version of this package."""
    if database_alias() not in (databases or ()) or list(_database()):
        return []
    try:
        with closing(PgBeat(url=alias_url(), schema=schema())) as beat:
            migrate.check(beat.database.engine, schema())
    except SchemaMissing as error:
        hint = (
            "Run manage.py migrate."
            if AliasBeat().settings.auto_migrate
            else "pgbeat_auto_migrate is off: run celery-pgbeat migrate as a user who may do it."
        )
        return [checks.Warning(str(error).partition(":")[0], hint=hint, id="pgbeat.W006")]
    except DatabaseUnavailable:
        return []  # Django says so itself
    except (PgBeatError, Error) as error:
        return [checks.Warning(str(error), id="pgbeat.W007")]
    return []
