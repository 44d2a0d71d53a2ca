"""Durations as people write them: a timedelta, a number of seconds, `1h30m`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.schedules.durations import DurationError, read_iso, read_spoken
from celery_pgbeat.texts.safe_text import in_short

WAYS = "use a timedelta, a number of seconds, or text such as '30m' or '1h30m'"


def read_duration(field: str, value: Any) -> timedelta:
    """Return a duration, of any sign.

    Raises:
        InvalidPeriodicTask: it is not a duration; names the field and the value.
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str):
        return _read_text(field, value.strip())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}; {WAYS}")
    try:
        return timedelta(seconds=value)
    except OverflowError:
        raise InvalidPeriodicTask(f"{field} is {in_short(value)} seconds, which is too long") from None
    except ValueError:  # not a number
        raise InvalidPeriodicTask(f"{field} is {in_short(value)}; {WAYS}") from None


def _read_text(field: str, text: str) -> timedelta:
    try:
        duration = read_iso(text) if text[:1] in ("P", "p") else read_spoken(text)
    except DurationError as error:
        raise InvalidPeriodicTask(f"{field} is {in_short(text)}: {error.reason}; {WAYS}") from None
    if duration.months:
        raise InvalidPeriodicTask(f"{field} is {in_short(text)}; months and years have no fixed length: {WAYS}")
    return timedelta(days=duration.days) + duration.elapsed
