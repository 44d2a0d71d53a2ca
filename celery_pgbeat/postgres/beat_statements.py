"""How the statements of the beats are run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from celery_pgbeat.postgres.arrays import array_text
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.migrate import latest


class BeatStatements:
    """Statements on behalf of one beat."""

    def __init__(self, database: Database, beat: str, lease: timedelta) -> None:
        self.database = database
        self.beat = beat
        self.lease = lease.total_seconds()
        self._version = latest()  # of the schema that this package brings

    def _run(self, name: str, **parameters: Any) -> Sequence[Any]:
        given: dict[str, Any] = {
            key: array_text(value) if isinstance(value, list) else value for key, value in parameters.items()
        }
        return self.database.run(name, **given)


def stored_error(error: str) -> str:
    """Return an error as the tables have it."""
    return error[:500].replace("\0", "")
