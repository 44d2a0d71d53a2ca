"""The app, by which Django finds models, admin, checks and templates."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class PgBeatConfig(AppConfig):
    """celery-pgbeat as an app of a Django project; its label is `pgbeat`."""

    name = "celery_pgbeat.django"
    label = "pgbeat"
    verbose_name = "Periodic tasks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, and have each `migrate` bring the schema up to date."""
        from celery_pgbeat.django import checks
        from celery_pgbeat.django.bring_schema import after_migrate

        checks.register()
        post_migrate.connect(after_migrate, sender=self, dispatch_uid="pgbeat")
