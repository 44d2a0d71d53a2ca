"""The id of the job of a tick, and of an occurrence in a backfill."""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime, timezone
from functools import lru_cache

from .types import MICROSECOND

UTC = timezone.utc
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # that of Postgres


def job_id(name: str, created_at: datetime, scheduled_for: datetime) -> uuid.UUID:
    """Return the id of a tick's job: the same from every beat; another one for a new row of the same name.

    A mark that submits at once computes the same: `job_id` in `definitions/internal/jobs.sql`.
    """
    return _id_of(name.encode() + _sent(_in_utc(created_at)) + _sent(_in_utc(scheduled_for)))


def backfill_job_id(name: str, backfill: uuid.UUID, scheduled_for: datetime) -> uuid.UUID:
    """Return the id of an occurrence's job in a backfill: the same from every beat; another one in another backfill."""
    return _id_of(name.encode() + backfill.bytes + _sent(_in_utc(scheduled_for)))


def _id_of(value: bytes) -> uuid.UUID:
    """Return a UUID of version 8, the one for hashes of one's own."""
    digits = hashlib.sha256(value).hexdigest()
    return uuid.UUID(f"{digits[:12]}8{digits[13:16]}8{digits[17:32]}")


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


@lru_cache(maxsize=256)  # many rows fall due at one instant; equal datetimes in UTC are one instant
def _sent(instant: datetime) -> bytes:
    """Return an instant as Postgres sends it (`timestamptz_send`)."""
    return ((instant - EPOCH) // MICROSECOND).to_bytes(8, "big", signed=True)
