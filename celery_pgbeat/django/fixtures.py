"""Our rows are no fixtures: Django would write what beats and workers have written, and views cannot be written."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

LABEL = "pgbeat"
NO_FIXTURE = (
    "The rows of pgbeat are no fixture. `celery-pgbeat export` writes the definitions, and `celery-pgbeat import` "
    "reads them. To leave them out of a dump or a fixture: --exclude pgbeat."
)


def refuse_fixture(raw: bool = False, **_: Any) -> None:
    """Refuse to load a row of a fixture.

    Raises:
        CommandError: it is one of ours; says what to do instead.
    """
    if raw:
        raise CommandError(NO_FIXTURE)
