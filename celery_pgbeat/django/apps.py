"""The app, by which Django finds models, admin, checks and templates."""

from __future__ import annotations

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_save

from celery_pgbeat.django.fixtures import LABEL, refuse_fixture
from celery_pgbeat.django.place import database_alias, database_url
from celery_pgbeat.errors import PgBeatError


class PgBeatConfig(AppConfig):
    """celery-pgbeat as an app of a Django project; its label is `pgbeat`.

    Attributes:
        url: of the database as the settings name it, before Django's tests give it another name; None if it is no
            Postgres.
    """

    name = "celery_pgbeat.django"
    label = LABEL
    verbose_name = "celery-pgbeat"
    default_auto_field = "django.db.models.BigAutoField"
    url: str | None = None

    def ready(self) -> None:
        """Register the checks, have each `migrate` bring the schema up to date, and refuse fixtures."""
        from celery_pgbeat.django import checks
        from celery_pgbeat.django.bring_schema import after_migrate

        self.url = _configured_url()
        checks.register()
        post_migrate.connect(after_migrate, sender=self, dispatch_uid="pgbeat")
        for model in self.get_models():
            pre_save.connect(refuse_fixture, sender=model, dispatch_uid="pgbeat")


def _configured_url() -> str | None:
    try:
        return database_url(connections.databases.get(database_alias(), {}))
    except PgBeatError:
        return None  # the checks say so
