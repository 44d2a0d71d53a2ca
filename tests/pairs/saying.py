"""One statement as the product says it: the text that reaches Postgres, with its values in it.

The stores themselves build the values, so nothing here can differ from what beats and workers say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from psycopg2.extensions import cursor as Cursor

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.postgres.worker_queries import WorkerQueries

LEASE = timedelta(seconds=15)

Loader = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Attributes:
        verb: what it is called, as its file or its function.
        about: which job it is about, where there are several; else empty.
        sql: its text.
        again: what the beat says in its next cycles, which does what this one stepped over; None: it comes once.
        answered: its answer is part of the outcome, for somebody acts on it.
        tries: how often its caller says it where it trips over a unique index.
        by_author: it is an author's write.
        beside: the only one that it meets: the same, of another beat; None: it meets all.
    """

    verb: str
    sql: str
    about: str = ""
    again: str | None = None
    answered: bool = False
    tries: int = 1
    by_author: bool = False
    beside: str | None = None

    def meets(self, other: Statement) -> bool:
        """Return whether the two are to be tried beside each other."""
        return all(one.beside in (None, two.verb) for one, two in ((self, other), (other, self)))

    @property
    def label(self) -> str:
        """Its name in a report."""
        return f"{self.verb} {self.about}".rstrip()


class _Said(Exception):
    """Carries what a store was about to say."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        super().__init__(name)
        self.name = name
        self.parameters = parameters


class _Listener:
    """Stands in for a database, and says nothing to any."""

    def run(self, name: str, /, connection: None = None, **parameters: Any) -> Any:
        """Carry the statement to whoever asked for it."""
        raise _Said(name, parameters)


class Texts:
    """Makes the texts of statements, for one schema."""

    def __init__(self, cursor: Cursor, load: Loader = statement) -> None:
        self._cursor = cursor
        self._load = load

    def of_beat(self, beat: str, call: Callable[[BeatQueries], object]) -> str:
        """Return what a beat's store says when it is called so."""
        return self._said(lambda listener: call(BeatQueries(listener, beat, LEASE)))

    def of_worker(self, call: Callable[[WorkerQueries], object]) -> str:
        """Return what a worker's reports say when they are called so."""
        return self._said(lambda listener: call(WorkerQueries(listener)))

    def of_file(self, name: str, /, **parameters: Any) -> str:
        """Return a statement of `sql/` that a door says."""
        return self.of_text(self._load(name, "pgbeat"), **parameters)

    def of_text(self, sql: str, /, **parameters: Any) -> str:
        """Return an author's own SQL with its values."""
        text: bytes = self._cursor.mogrify(sql, parameters)
        return text.decode()

    def _said(self, call: Callable[[Database], object]) -> str:
        try:
            call(cast(Database, _Listener()))
        except _Said as said:
            return self.of_file(said.name, **said.parameters)
        raise AssertionError("it says nothing")
