"""The id of the job of a tick, and of an occurrence in a backfill."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import lru_cache

# Jobs get their ids from this namespace, so that a tick submitted again carries the id it had.
JOB_IDS = uuid.UUID("6f9c2f0e-7a35-5d59-9a53-4c1f3d0b1c55")

NAMESPACE = JOB_IDS.bytes
VERSION = 5 << 76 | 0b10 << 62  # the version, and the variant of RFC 4122
FREE = ~(0b1111 << 76 | 0b11 << 62) & (1 << 128) - 1  # the bits around them
UTC = timezone.utc


def job_id(name: str, created_at: datetime, scheduled_for: datetime) -> uuid.UUID:
    """Return the id of a tick's job: the same from every beat; another one for a new row of the same name."""
    return _id_of(f"{name}\0{_in_utc(created_at).isoformat()}\0{_shown(_in_utc(scheduled_for))}")


def job_ids(name: str, created_at: datetime, scheduled_fors: Iterable[datetime]) -> tuple[str, ...]:
    """Return the ids of the jobs of several ticks of one row as hexadecimal digits, see `job_id`."""
    row = f"{name}\0{_in_utc(created_at).isoformat()}\0"
    return tuple(f"{_number_of(row + _shown(_in_utc(instant))):032x}" for instant in scheduled_fors)


def backfill_job_id(name: str, backfill: uuid.UUID, scheduled_for: datetime) -> uuid.UUID:
    """Return the id of an occurrence's job in a backfill: the same from every beat; another one in another backfill."""
    return _id_of(f"{name}\0{backfill}\0{_shown(_in_utc(scheduled_for))}")


def _id_of(text: str) -> uuid.UUID:
    return uuid.UUID(int=_number_of(text))


def _number_of(text: str) -> int:
    # What uuid5 does, at a lower cost: every tick needs an id.
    digest = hashlib.sha1(NAMESPACE + text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:16], "big") & FREE | VERSION


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


# Many rows fall due at one instant, so the texts of the last 256 are kept. Equal instants in UTC have equal texts.
_shown = lru_cache(maxsize=256)(datetime.isoformat)
