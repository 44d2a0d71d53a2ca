"""A text that is being read, with the arguments of `parse`, and the errors that point into it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from celery_pgbeat.errors import InvalidSchedule

from .wallclock.instants import EPOCH
from .wallclock.zones import Zone, zone_named

WORD = re.compile(r"\S+")


class Word(NamedTuple):
    """A run of characters without a space, and where it begins in the text."""

    text: str
    at: int


class PartError(Exception):
    """What is wrong with a part of a text: the field, the reason, and where in that part."""

    def __init__(self, field: str, reason: str, at: int) -> None:
        super().__init__(field, reason, at)
        self.field = field
        self.reason = reason
        self.at = at


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that is being read.

    Attributes:
        text: as it was given, for messages.
        body: the rest that is not read yet.
        at: where `body` begins in `text`.
        timezone: the zone in force unless the text names another.
        name: the row's name, for `H`.
        dst: one of `dst.CHOICES`.
        anchor: the instant from which intervals without a start of their own are counted; None for the epoch.
    """

    text: str
    body: str
    at: int = 0
    timezone: str = "UTC"
    name: str = ""
    dst: str = "default"
    anchor: datetime | None = None

    def skip(self, characters: int) -> SourceText:
        """Return the source without its first characters, and without the spaces after them."""
        rest = self.body[characters:]
        stripped = rest.lstrip()
        return replace(self, body=stripped, at=self.at + characters + len(rest) - len(stripped))

    def words(self) -> list[Word]:
        """Return the words of the body."""
        return [Word(match.group(), self.at + match.start()) for match in WORD.finditer(self.body)]

    def zone(self) -> Zone:
        """Return the zone in force."""
        return zone_named(self.timezone)

    @property
    def grid_start(self) -> datetime:
        """Return the instant from which intervals without a start of their own are counted."""
        return self.anchor or EPOCH

    def refuse(self, field: str, reason: str, at: int | None = None) -> InvalidSchedule:
        """Return the error that says what is wrong with `field`; `at` is an offset in `text`."""
        return InvalidSchedule(self.text, field, reason, at)
