"""Checks before sending that a row may become a message, by the rules for declarations.

A row may contain values that this package refuses: from a restored dump, while a trigger was disabled, from a role that
writes jobs, or from an older package.
"""

from __future__ import annotations

import json
from functools import lru_cache

from celery_pgbeat.declare.options import read_options
from celery_pgbeat.declare.texts import read_queue
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.plain_json import check_json


def check_sendable(queue: str | None, options: str, args: str, kwargs: str) -> None:
    """Check the parts of a row from which its message is made; the last three are JSON.

    Raises:
        InvalidPeriodicTask: one of them would be refused in a declaration; names it.

    Example:
        >>> check_sendable("low", '{"expires": 60}', "[1]", "{}")
    """
    if queue is not None:
        _check_queue(queue)
    if options != "{}":
        _check_options(options)
    check_json("args", args)
    check_json("kwargs", kwargs)


@lru_cache(maxsize=1024)
def _check_queue(name: str) -> None:
    read_queue("queue", name)


@lru_cache(maxsize=1024)
def _check_options(text: str) -> None:
    check_json("options", text)
    try:
        options = json.loads(text)
    except ValueError as error:
        raise InvalidPeriodicTask(f"options cannot be read: {error}") from None
    read_options("options", options)
