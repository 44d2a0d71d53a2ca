"""Two real connections at one moment: a statement whose transaction is still open, and another one beside it.

A statement that meets a lock either waits for it (`waits_for` reads that from the server's own tables) or skips the row
and returns (`at_once`). No test sleeps and hopes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import WorkerQueries
from tests.harness.ticks import LEASE
from tests.harness.wait import eventually

T = TypeVar("T")
PATIENCE = 10.0  # seconds until a test gives up


class Transaction:
    """A connection whose statements no other connection sees until `commit`."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)
        self._connection = self._database.engine.connect().execution_options(isolation_level="READ COMMITTED")
        (row,) = self.execute("select pg_backend_pid()")
        self.pid: int = row[0]

    def run(self, name: str, /, **parameters: Any) -> Sequence[Any]:
        """Run one of the product's statements."""
        return self._database.run(name, connection=self._connection, **parameters)

    def execute(self, sql: str, parameters: dict[str, Any] | None = None) -> Sequence[Any]:
        """Run any other."""
        return self._database.execute(sql, parameters, self._connection)

    def store(self, name: str = "beat-a") -> BeatQueries:
        """Return a beat's statements, all in this transaction."""
        return BeatQueries(cast(Database, self), name, LEASE)

    @property
    def reports(self) -> WorkerQueries:
        """A worker's statements, all in this transaction."""
        return WorkerQueries(cast(Database, self))

    def commit(self) -> None:
        """Commit, and close the connection."""
        self._connection.commit()
        self.close()

    def rollback(self) -> None:
        """Roll back, and close the connection."""
        self._connection.rollback()
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._database.close()


class Attempt(Generic[T]):
    """A statement that another connection runs, in a thread of its own."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._answers: list[T] = []
        self._errors: list[Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answers.append(self._function())
        except Exception as error:  # noqa: BLE001  raised again in the test
            self._errors.append(error)

    def waits_for(self, other: Transaction, witness: Database) -> Attempt[T]:
        """Return once it waits for a lock of the transaction."""
        waiting = "select 1 from pg_stat_activity where %(pid)s = any (pg_blocking_pids(pid))"
        eventually(
            lambda: witness.execute(waiting, {"pid": other.pid}),
            PATIENCE,
            f"it waits for the other (but is answered {self._answers}, {self._errors})",
            every=0.01,
        )
        return self

    def answer(self) -> T:
        """Return what the statement returned, once it is over."""
        self._thread.join(PATIENCE)
        if self._errors:
            raise self._errors[0]
        assert self._answers, "it waits for a lock"
        return self._answers[0]


def at_once(function: Callable[[], T]) -> T:
    """Return what a statement returns that must not wait for a lock."""
    return Attempt(function).answer()
