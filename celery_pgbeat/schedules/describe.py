"""Schedules in plain English, told from their canonical text."""

from __future__ import annotations

from collections.abc import Callable

from .iso.words import interval_in_words, iso_in_words, once_in_words
from .rrule.text import read_set
from .rrule.words import set_in_words
from .source_text import SourceText
from .words import calendar_fields, cron_fields, fields_in_words


def in_words(kind: str, text: str, timezone: str) -> str:
    """Return the schedule of that canonical text in words, with its zone unless that is UTC."""
    words = WORDS[kind](text)
    return words if timezone == "UTC" else f"{words} ({timezone})"


def _cron(text: str) -> str:
    return fields_in_words(cron_fields(text))


def _calendar(text: str) -> str:
    return fields_in_words(calendar_fields(text))


def _rrule(text: str) -> str:
    return set_in_words(read_set(SourceText(text, text, 0, "UTC", "", "default", None)))


def _solar(text: str) -> str:
    _, event, latitude, longitude = text.split()
    return f"at {event.replace('_', ' ')} at latitude {latitude}, longitude {longitude}"


WORDS: dict[str, Callable[[str], str]] = {
    "cron": _cron,
    "crontab": _cron,
    "calendar": _calendar,
    "interval": interval_in_words,
    "iso": iso_in_words,
    "once": once_in_words,
    "rrule": _rrule,
    "solar": _solar,
}
