"""Checks texts of a row, and refuses names that the broker or Celery use themselves."""

from __future__ import annotations

import re
from typing import Any

from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.texts.safe_text import in_short

LONGEST_TEXT = 1_000  # characters of a name or of free text
CONTROL = re.compile(r"[\x01-\x1f\x7f-\x9f]")  # those of Unicode's categories C0 and C1; NUL is refused before
# Names that Celery, kombu and RabbitMQ use themselves. In Redis a queue is a key: a list with the name `unacked`
# instead of kombu's hash ends each worker that fetches a message. The same as in SQL
# (`tests/interfaces/test_validation.py`).
BROKERS_OWN = re.compile(r"unacked|_kombu\.|celeryev|celery-task(set)?-meta-|amq\.|.*\.pidbox\Z", re.DOTALL)


def read_text(field: str, value: Any) -> str:
    """Return a text of at least one character.

    Raises:
        InvalidPeriodicTask: it is not a text, is empty, or Postgres cannot store it.
    """
    if not isinstance(value, str):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}, not text")
    if not value:
        raise InvalidPeriodicTask(f"{field} is empty; give it at least one character")
    return storable(field, value)


def is_storable(text: str) -> bool:
    """Whether Postgres can store the text: without NUL, without a lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def storable(field: str, text: str) -> str:
    """Return the text if Postgres can store it.

    Raises:
        InvalidPeriodicTask: it contains NUL or a lone surrogate.
    """
    if not is_storable(text):
        raise InvalidPeriodicTask(f"{field} is {in_short(text)}; Postgres stores neither NUL nor lone surrogates")
    return str.__str__(text)  # of a subclass, such as an enum's member, only its value


def read_short_text(field: str, value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return a text for a row.

    Raises:
        InvalidPeriodicTask: it is not a text, longer than 1,000 characters, or Postgres cannot store it.
    """
    text = read_text(field, value)
    if len(text) > longest:
        raise InvalidPeriodicTask(f"{field} has {len(text)} characters, more than {longest}")
    return text


def printable(field: str, text: str) -> str:
    """Return a text without control characters, which could forge a line of a log or send commands to a terminal.

    Raises:
        InvalidPeriodicTask: it contains one; names it.

    Example:
        >>> printable("name", "nightly")
        'nightly'
    """
    found = CONTROL.search(text)
    if found:
        raise InvalidPeriodicTask(f"{field} has the control character U+{ord(found.group()):04X}: take it out")
    return text


def read_one_line(field: str, value: Any) -> str:
    """Return a short text without control characters.

    Raises:
        InvalidPeriodicTask: see `read_short_text` and `printable`.
    """
    return printable(field, read_short_text(field, value))


def routable(field: str, text: str) -> str:
    """Return the name of a queue or an exchange, if the broker and Celery do not use it themselves.

    Raises:
        InvalidPeriodicTask: they do.

    Example:
        >>> routable("queue", "reports")
        'reports'
    """
    if BROKERS_OWN.match(text):
        raise InvalidPeriodicTask(
            f"{field} is {text!r}, a name that the broker or Celery keeps for itself: use another name"
        )
    return printable(field, text)


def read_queue(field: str, value: Any) -> str:
    """Return the name of a queue.

    Raises:
        InvalidPeriodicTask: see `read_short_text` and `routable`.
    """
    return routable(field, read_short_text(field, value))
