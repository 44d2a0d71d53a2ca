"""`H` in a cron field: a value that differs from row to row and never changes for one row.

The value is the SHA-256 of `name`, a zero byte and the field's name, read as a big-endian number, modulo how many
values there are to choose from. This is a promise: a stored `H` must not move with a new version.
"""

from __future__ import annotations

import re
from hashlib import sha256

from ..source_text import PartError
from .fields import DAY, Field

HASHED = re.compile(r"H(?:\((\w+)-(\w+)\))?(?:/(\d+))?", re.ASCII)
DAYS_OF_EVERY_MONTH = 28  # a bare H in the day field chooses among the days that no month lacks


def expand(field: Field, text: str, name: str) -> str:
    """Return the field with each `H` replaced by a number or a range.

    Raises:
        PartError: a range is out of bounds or empty, or a step is 0.
    """
    at, parts = 0, []
    for element in text.split(","):
        match = HASHED.fullmatch(element)
        parts.append(_expand_one(field, match, at, name) if match else element)
        at += len(element) + 1
    return ",".join(parts)


def _expand_one(field: Field, match: re.Match[str], at: int, name: str) -> str:
    first, last, step_text = match.groups()
    low = field.number(first, at) if first else field.low
    high = field.number(last, at) if last else DAYS_OF_EVERY_MONTH if field is DAY else field.high
    if low > high:
        raise PartError(field.name, f"{field.name} H({low}-{high}) is an empty range", at)
    step = int(step_text) if step_text else high - low + 1
    if step == 0:
        raise PartError(field.name, f"a step of 0 in {field.name}", at)
    digest = sha256(f"{name}\0{field.name}".encode()).digest()
    value = low + int.from_bytes(digest, "big") % min(step, high - low + 1)
    return f"{value}-{high}/{step}" if step_text and value + step <= high else str(value)
