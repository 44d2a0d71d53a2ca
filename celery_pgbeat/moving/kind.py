"""A kind of source: what it is called, how it is read, and how its entries are switched off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from celery_pgbeat.moving.answers import Answer
from celery_pgbeat.postgres.database import Database

DRIFT = "An interval is counted from the last run there, and does not drift any more."
OVERDUE = "A run that is overdue when you import is not made up: the row runs at its next time."
NIGHTS = (
    "On the nights when the clocks change, a time that does not exist runs right after the gap, and wildcards follow "
    "real time: Celery's arithmetic runs an hour later, or leaves an hour out."
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a kind may need to read its source.

    Attributes:
        source: where the entries are; None for the kind's default.
        database: our own, where a source in tables is by default.
        now: the time by the clock of that database.
        app: the Celery app; None if none was named.
        task: the Celery task that runs commands; only for kinds whose entries are commands.
        key_prefix: of the keys in Redis; None for the app's, or RedBeat's default.
        trust_pickle: whether pickles in the source may be loaded, which runs whatever code they hold.
        read: what was read, for the report; the readers add to it.
    """

    source: str | None
    database: Database
    now: datetime
    app: Any = None
    task: str | None = None
    key_prefix: str | None = None
    trust_pickle: bool = False
    read: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kind:
    """A scheduler that one can move in from.

    Attributes:
        read: iterates over what became of each entry.
        differences: what differs for all of its rows, in one sentence each.
        own_overlap: whether its entries say what happens while the last run is not finished.
        switch_off: switches entries off by their keys, on a connection to our database; None if it cannot.
    """

    name: str
    read: Callable[[Request], Iterator[Answer]]
    differences: tuple[str, ...] = ()
    own_overlap: bool = False
    switch_off: Callable[[Any, Collection[Any]], None] | None = None
