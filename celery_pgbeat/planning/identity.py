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
VERSION = "5"  # the digit after the twelfth
VARIANT = {digit: f"{int(digit, 16) & 0b11 | 0b1000:x}" for digit in "0123456789abcdef"}  # of RFC 4122, after the 16th
UTC = timezone.utc


def job_id(name: str, created_at: datetime, scheduled_for: datetime) -> uuid.UUID:
    """Return the id of a tick's job: the same from every beat; another one for a new row of the same name."""
    return _id_of(f"{name}\0{_in_utc(created_at).isoformat()}\0{_shown(_in_utc(scheduled_for))}")


def job_ids(name: str, created_at: datetime, scheduled_fors: Iterable[datetime]) -> tuple[str, ...]:
    """Return the ids of the jobs of several ticks of one row as hexadecimal digits, see `job_id`."""
    row = _hashed(f"{name}\0{_in_utc(created_at).isoformat()}\0")
    return tuple(_digits_after(row.copy(), _shown(_in_utc(instant))) for instant in scheduled_fors)


def backfill_job_id(name: str, backfill: uuid.UUID, scheduled_for: datetime) -> uuid.UUID:
    """Return the id of an occurrence's job in a backfill: the same from every beat; another one in another backfill."""
    return _id_of(f"{name}\0{backfill}\0{_shown(_in_utc(scheduled_for))}")


def _id_of(text: str) -> uuid.UUID:
    return uuid.UUID(_digits_after(_hashed(""), text))


# What uuid5 does, at a lower cost: every tick needs an id. What many ids begin with is hashed once.
def _hashed(text: str) -> hashlib._Hash:
    return hashlib.sha1(NAMESPACE + text.encode(), usedforsecurity=False)


def _digits_after(hashed: hashlib._Hash, text: str) -> str:
    hashed.update(text.encode())
    digits = hashed.hexdigest()
    return f"{digits[:12]}{VERSION}{digits[13:16]}{VARIANT[digits[16]]}{digits[17:32]}"


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


# Many rows fall due at one instant, so the texts of the last 256 are kept. Equal instants in UTC have equal texts.
_shown = lru_cache(maxsize=256)(datetime.isoformat)
