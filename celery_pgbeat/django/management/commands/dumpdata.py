"""`dumpdata` of a project, without the schedule.

Beats and workers write these tables, and some are views, so `loaddata` could not load them.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import dumpdata

from celery_pgbeat.django.fixtures import LABEL, NO_FIXTURE


class Command(dumpdata.Command):
    """Django's command; it leaves this app out."""

    def handle(self, *app_labels: str, **options: Any) -> Any:
        """Write the rows of the other apps.

        Raises:
            CommandError: this app, or a model of it, is asked for.
        """
        if any(label.partition(".")[0] == LABEL for label in app_labels):
            raise CommandError(NO_FIXTURE)
        return super().handle(*app_labels, **{**options, "exclude": [*options["exclude"], LABEL]})
