"""Checks the id of a job before it is sent to Postgres."""

from __future__ import annotations

from uuid import UUID

from celery_pgbeat.errors import UnknownJob
from celery_pgbeat.safe_text import in_short


def read_job_id(id: UUID | str) -> UUID:
    """Return the id of a job.

    Raises:
        UnknownJob: it is no UUID.
    """
    try:
        return UUID(str(id))
    except ValueError:
        raise UnknownJob(f"There is no job {in_short(id)}: an id is a UUID, such as trigger() returns") from None
