"""JSON that every process can read: not nested too deeply, and without numbers of hundreds of digits.

A worker's main process pickles the arguments for its pool, and fails as a whole at about 800 levels; Python reads no
number of more than 4,300 digits. Such JSON is refused on writing. If a table contains it all the same, it is read as
`Unreadable`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from celery_pgbeat.errors import InvalidPeriodicTask

DEEPEST = 100  # levels below the top
LARGEST = 10**309  # refused from here on; every float is smaller
SUSPECT = re.compile(r"[0-9]{309}|[eE]\+?[0-9]{3}")  # may be such a number


def check_json(field: str, text: str) -> None:
    """Check that every process can read a JSON text.

    Raises:
        InvalidPeriodicTask: it is nested too deeply or has too large a number; the same words as in SQL.

    Example:
        >>> check_json("args", "[[1], 2]")
    """
    if text.count("[") + text.count("{") <= DEEPEST and not SUSPECT.search(text):
        return
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep(field) from None
    except ValueError:  # the digits of a number
        raise _too_large(field) from None
    level, values = 0, [value]
    while values:
        if level > DEEPEST:
            raise _too_deep(field)
        if any(isinstance(item, (int, float)) and not -LARGEST < item < LARGEST for item in values):
            raise _too_large(field)
        level, values = level + 1, [inner for item in values for inner in _inside(item)]


class Unreadable(str):
    """Stands for JSON that cannot be read: the reason, in angle brackets."""

    __slots__ = ()


def read_json(text: str | bytes) -> Any:
    """Return the value of JSON from a table, or an `Unreadable`.

    Example:
        >>> read_json("[1, 2]"), read_json("[" * 3000 + "]" * 3000)
        ([1, 2], '<unreadable: nested more than 100 levels deep>')
    """
    decoded = text.decode("utf-8") if isinstance(text, bytes) else text
    try:
        check_json("it", decoded)
        return json.loads(decoded)
    except InvalidPeriodicTask as error:
        reason = str(error).partition(":")[0].removeprefix("it ").removeprefix("is ")
    except ValueError as error:
        reason = str(error)
    return Unreadable(f"<unreadable: {reason}>")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep(field: str) -> InvalidPeriodicTask:
    return InvalidPeriodicTask(f"{field} is nested more than {DEEPEST} levels deep: pass an id or flatter data instead")


def _too_large(field: str) -> InvalidPeriodicTask:
    return InvalidPeriodicTask(f"{field} has a number of more than 309 digits: pass it as text")
