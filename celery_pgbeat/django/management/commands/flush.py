"""`flush`, which Django's tests call after each test that commits.

In the database of tests it empties the schedule too. In another one it leaves it: other projects may use the same.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands import flush

from celery_pgbeat.django import emptied


class Command(flush.Command):
    """Django's command; in a database of tests it empties the schedule too."""

    def handle(self, **options: Any) -> None:
        """Empty the tables."""
        super().handle(**options)
        if emptied.is_for_tests(options["database"]):
            emptied.empty(options["database"])
