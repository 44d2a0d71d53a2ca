"""Reads the value of a setting: its type and its bounds. A wrong one is an error that names setting and value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.statements import checked_schema
from celery_pgbeat.texts.safe_text import in_short

DAY = timedelta(days=1)
SHORTEST_PASSWORD = 8  # characters; with it a person sees every periodic task


def text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    # A value that is not a number may contain a password.
    shown = repr(value) if isinstance(value, (int, float)) else f"of the type {type(value).__qualname__}"
    raise InvalidSetting(f"{name} is {shown}, not text")


def schema(name: str, value: Any) -> str:
    return checked_schema(text(name, value) or "")


@dataclass(frozen=True, slots=True)
class Duration:
    """Reads a duration within bounds: outside them a beat would only poll, or wait for years.

    Attributes:
        lowest: the shortest value.
        highest: the longest value.
        unit: the unit of a number.
        optional: whether None and an empty text are allowed.
        off: whether 0, `no`, `off` and `false` mean None.
    """

    lowest: timedelta
    highest: timedelta
    unit: str = "seconds"
    optional: bool = False
    off: bool = False

    def __call__(self, name: str, value: Any) -> timedelta | None:
        """Return the duration.

        Raises:
            InvalidSetting: it is not a duration, or out of bounds; names the setting, the value and the bounds.
        """
        if self.optional and value == "":
            return None
        if self.off and str(value).lower() in ("0", "0.0", "false", "no", "off"):
            return None
        try:
            duration = value if isinstance(value, timedelta) else timedelta(**{self.unit: float(value)})
        except (TypeError, ValueError, OverflowError):
            raise InvalidSetting(f"{name} is {in_short(value)}, not a number of {self.unit}") from None
        if not self.lowest <= duration <= self.highest:
            raise InvalidSetting(f"{name} is {in_short(value)}; it must be from {self.bounds}")
        return duration

    @property
    def bounds(self) -> str:
        """The bounds in words, such as `0.1 s to 1 day`."""
        return f"{in_units(self.lowest)} to {in_units(self.highest)}"


def in_units(duration: timedelta) -> str:
    """Return a duration in days, hours or seconds, whichever it is a whole number of.

    Example:
        >>> in_units(timedelta(hours=1)), in_units(timedelta(seconds=0.1)), in_units(timedelta(days=30))
        ('1 hour', '0.1 s', '30 days')
    """
    for unit, length in (("day", timedelta(days=1)), ("hour", timedelta(hours=1))):
        if duration >= length and not duration % length:
            return f"{duration // length:,} {unit}{'s' if duration > length else ''}"
    return f"{duration.total_seconds():g} s"


def _whole(value: Any) -> int:
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        raise ValueError(type(value))
    return int(value)


def count(name: str, value: Any) -> int:
    try:
        number = _whole(value)
    except ValueError:
        raise InvalidSetting(f"{name} is {in_short(value)}, not a whole number") from None
    if not 1 <= number <= 10_000:
        raise InvalidSetting(f"{name} is {in_short(value)}; it must be from 1 to 10000")
    return number


def port(name: str, value: Any) -> int:
    try:
        number = _whole(value)
    except ValueError:
        raise InvalidSetting(f"{name} is {in_short(value)}, not a port number") from None
    if not 1 <= number <= 65_535:
        raise InvalidSetting(f"{name} is {in_short(value)}; a port is from 1 to 65535")
    return number


def password(name: str, value: Any) -> str | None:
    """Check a password. Errors do not repeat it."""
    password = text(name, value)
    if password is not None and len(password) < SHORTEST_PASSWORD:
        raise InvalidSetting(f"{name} has {len(password)} characters; it must have at least {SHORTEST_PASSWORD}")
    return password


def webhook(name: str, value: Any) -> str:
    """Check a URL. Errors do not repeat it, because it may contain a secret."""
    try:
        parts = urlsplit(text(name, value) or "")
        well = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port
        well = False
    if not well:
        raise InvalidSetting(f"{name} is not an HTTP URL; write it as https://host/path")
    return str(value)


def masked_webhook(url: str) -> str:
    """Return the URL with only its server, because with many services the path is a secret.

    Example:
        >>> masked_webhook("https://me:secret@hooks.example.com/services/T0/B1?key=2")
        'https://hooks.example.com/***'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/***"


def switch(name: str, value: Any) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    try:
        return known[str(value).lower()]
    except KeyError:
        raise InvalidSetting(f"{name} is {in_short(value)}; use true or false") from None


def patterns(name: str, value: Any) -> tuple[str, ...]:
    try:
        patterns = tuple(_listed(value) if isinstance(value, str) else value)
    except TypeError:
        raise InvalidSetting(f"{name} is {in_short(value)}, not a list of task name patterns") from None
    if not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise InvalidSetting(f"{name} is {in_short(value)}, not a list of task name patterns")
    if any(quote in pattern for pattern in patterns for quote in "\"'"):  # it would match nothing
        raise InvalidSetting(f'{name} is {in_short(value)}; write it as a.task, b.* or as ["a.task", "b.*"]')
    return patterns


def _listed(text: str) -> list[Any]:
    """Return the parts of a text: of a JSON list, else what is between commas. `[ab]*` is a pattern."""
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    return listed if isinstance(listed, list) else [part.strip() for part in text.split(",")]


def guard_error(name: str, value: Any) -> str:
    if value not in ("run", "refuse"):
        raise InvalidSetting(f"{name} is {in_short(value)}; use 'run' or 'refuse'")
    return str(value)
