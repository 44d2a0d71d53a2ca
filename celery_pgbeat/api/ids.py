"""Checks the ids of jobs and of backfills before they are sent to Postgres."""

from __future__ import annotations

from uuid import UUID

from celery_pgbeat.errors import PgBeatError, UnknownBackfill, UnknownJob
from celery_pgbeat.texts.safe_text import in_short


def read_job_id(id: UUID | str) -> UUID:
    """Return the id of a job.

    Raises:
        UnknownJob: it is no UUID.
    """
    return _read_id(id, "job", "trigger()", UnknownJob)


def read_backfill_id(id: UUID | str) -> UUID:
    """Return the id of a backfill.

    Raises:
        UnknownBackfill: it is no UUID.
    """
    return _read_id(id, "backfill", "backfills()", UnknownBackfill)


def _read_id(id: UUID | str, of: str, returned_by: str, error: type[PgBeatError]) -> UUID:
    try:
        return UUID(str(id))
    except ValueError:
        raise error(f"There is no {of} {in_short(id)}: an id is a UUID, such as {returned_by} returns") from None
