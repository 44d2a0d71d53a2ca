"""One database in which two statements meet: set a situation up, say statements, read what has become of it.

Two connections. What comes one after the other is said in one transaction, which is rolled back: nothing has to be put
back after it. What overlaps is committed, so the situation is put back from its copy. The clock stands, nothing sleeps.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic

import psycopg2
from psycopg2.extensions import POLL_OK, POLL_READ, POLL_WRITE

from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import normalise_url
from tests.harness.situations import NOON, Situation
from tests.pairs.saying import Statement

SETUP = Path(__file__).with_name("outcome.sql")
PATIENCE = 30.0  # seconds until a statement counts as stuck, once nothing stands in its way
# A job in the way, a name that is taken, unknown or has a job, a backfill that is over: answers, not failures.
ANSWERS = {"55006", "23505", "P0002", "02000", "55000", "42704"}
# What a beat's upkeep says every few seconds, whatever it has seen.
UPKEEP = "select pgbeat.promote_buffered(null)"
OUTCOME = "select stage.outcome()"
_DROP_DAYS = """
do $$
declare day regclass;
begin
    for day in select inhrelid from pg_inherits where inhparent = 'pgbeat.finished_job'::regclass
        and inhrelid <> 'pgbeat.finished_job_default'::regclass
    loop
        execute 'drop table ' || day;
    end loop;
end
$$
"""

State = tuple[str, ...]
Answers = tuple[str, str]  # those of two statements, empty where nobody acts on them


class Unforeseen(Exception):
    """A statement failed in a way that no caller expects, or waits for a lock that no other statement holds."""


class Stage:
    """Two connections to one migrated database."""

    def __init__(self, url: str) -> None:
        plain = normalise_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self.database = Database(url)
        self.situation = Situation(url)
        name = normalise_url(url).database
        # Nobody waits for a disk here, nor for plans that Postgres compiles: those are another test's.
        for setting in ("synchronous_commit = off", "jit = off"):
            self.situation.session.rows(f"alter database {name} set {setting}")
        self.situation.session.rows(_DROP_DAYS)
        self.situation.session.rows(SETUP.read_text(encoding="utf-8"))
        self._first = psycopg2.connect(plain)
        self._first.autocommit = True
        self.cursor = self._first.cursor()
        self._second = psycopg2.connect(plain, async_=True)
        self._await()
        self._pid = self._second.info.backend_pid
        self._restores = 0
        self._changed = self._waited = False

    def close(self) -> None:
        """Hang up."""
        self._second.close()
        self._first.close()
        self.situation.session.connection.close()
        self.database.close()

    @contextmanager
    def set_up(self) -> Iterator[Situation]:
        """Begin a situation from nothing; what the block makes of it is kept. Rows are a day old."""
        self.cursor.execute("select stage.empty()")
        self.situation.clock.stand_at(NOON - timedelta(days=1))
        yield self.situation
        self.cursor.execute("select stage.keep()")
        self._changed = False

    def state(self) -> State:
        """Return what has become of the situation."""
        self.cursor.execute(OUTCOME)
        return tuple(sorted(self.cursor.fetchone()[0] or ()))

    def come_again(self, statements: Sequence[Statement]) -> State:
        """Say what beats and workers say in their next turns; return what that comes to."""
        for statement in statements:
            if statement.again is not None:
                try:
                    self.cursor.execute(statement.again)
                except psycopg2.Error as error:
                    raise Unforeseen(f"{statement.label}, again: {error}") from error
        self.cursor.execute(UPKEEP)
        return self.state()

    # One after the other.

    def alone(self, statement: Statement) -> State:
        """Return what a statement comes to by itself."""
        with self._undone():
            self._run_direct(statement, "savepoint fork", "rollback to fork")
            return self.state()

    def in_turn(self, first: Statement, seconds: Sequence[Statement]) -> Iterator[tuple[Statement, State, Answers]]:
        """Say one statement and then, each time from there, another; iterate over what that comes to."""
        with self._undone():
            answer = self._run_direct(first, "savepoint fork", "rollback to fork")
            self.cursor.execute("savepoint fork")
            for second in seconds:
                other = self._run_direct(second, "rollback to fork", "rollback to fork")
                yield second, self.state(), (answer, other)

    def in_turn_and_again(self, first: Statement, second: Statement, again: Sequence[Statement]) -> State:
        """Say one after the other, and then what comes again; return what that comes to."""
        with self._undone():
            for statement in (first, second):
                self._run_direct(statement, "savepoint fork", "rollback to fork")
            return self.come_again(again)

    @contextmanager
    def _undone(self) -> Iterator[None]:
        self.cursor.execute(f"{self._restoring()} begin")
        try:
            yield
        finally:
            self.cursor.execute("rollback")

    def _run_direct(self, statement: Statement, before: str, undo: str) -> str:
        """Say a statement, in one message with what goes before it; return its answer, or the error's code."""
        try:
            self.cursor.execute(f"{before}; {statement.sql}")
            return _answer(statement, self.cursor)
        except psycopg2.Error as error:
            self.cursor.execute(undo)
            return _told(statement, error)

    def _restoring(self) -> str:
        """Return what puts the situation back, if anything that was committed has changed it."""
        if not self._changed:
            return ""
        self._changed = False
        self._restores += 1
        if self._restores % 200 == 0:  # dead rows would make each statement slower than the one before
            self.cursor.execute("vacuum pgbeat.active_job, pgbeat.finished_job_default, pgbeat.periodic_task")
        return "begin; select stage.restore(); commit;"

    # At one moment.

    def overlap(self, first: Statement, second: Statement) -> tuple[State, Answers, bool]:
        """Say the second beside the first, which commits when the second is over or waits for it.

        Returns what that comes to, both answers, and whether the second has waited.
        """
        restoring, self._changed = self._restoring(), True
        self._waited = False
        try:
            answer = self._run_direct(first, f"{restoring} begin", "rollback; begin")
            other = self._said_beside(second)
        except Unforeseen:
            self.cursor.execute("rollback")
            self._give_up()
            raise
        if not self._waited:
            self.cursor.execute("commit")
        return self.state(), (answer, other), self._waited

    def _give_up(self) -> None:
        """End what the second connection is still doing."""
        self._second.cancel()
        with suppress(psycopg2.Error):
            self._await()

    def _said_beside(self, statement: Statement) -> str:
        reader = self._second.cursor()
        left, is_asked_again = statement.tries, False
        while True:
            try:
                reader.execute(statement.sql)
                if not self._waited and not self._over():
                    self._commit()
                self._await()
                return _answer(statement, reader)
            except psycopg2.Error as error:
                # It waits for 200 ms at most, which may be over before this process sees it wait or has committed the
                # first one: it is asked again.
                if error.pgcode == "55P03" and not is_asked_again:
                    is_asked_again = True
                    if not self._waited:
                        self._commit()
                    continue
                left -= 1
                if error.pgcode != "23505" or not left:
                    return _told(statement, error)

    def _commit(self) -> None:
        self._waited = True
        self.cursor.execute("commit")

    def _over(self) -> bool:
        """Return whether the second statement is over, as soon as that is so or it waits for the first."""
        pause, until = 0.002, monotonic() + PATIENCE
        while monotonic() < until:
            if self._poll(pause):
                return True
            self.cursor.execute("select pg_backend_pid() = any (pg_blocking_pids(%s))", (self._pid,))
            if self.cursor.fetchone()[0]:
                return False
            pause = min(pause * 2, 0.1)
        raise Unforeseen("it takes for ever, and does not wait for the other one")

    def _await(self) -> None:
        """Return once the second connection is ready."""
        if not self._poll(PATIENCE):
            raise Unforeseen("it is stuck")

    def _poll(self, patience: float) -> bool:
        """Return whether the second connection is ready within so many seconds; whatever its statement raised comes."""
        until = monotonic() + patience
        while (state := self._second.poll()) != POLL_OK:
            left = until - monotonic()
            if left <= 0:
                return False
            reading = [self._second] if state == POLL_READ else []
            writing = [self._second] if state == POLL_WRITE else []
            select.select(reading, writing, [], left)
        return True


def _answer(statement: Statement, cursor: psycopg2.extensions.cursor) -> str:
    """Return in short what a statement was answered, if anybody acts on that: whether it did anything."""
    if not statement.answered:
        return ""
    rows = cursor.fetchall() if cursor.description else []
    return "yes" if any(any(value not in (None, False, 0) for value in row) for row in rows) else "no"


def _told(statement: Statement, error: psycopg2.Error) -> str:
    """Return the code of an error that its caller expects."""
    if statement.answered and error.pgcode in ANSWERS:
        return str(error.pgcode)
    raise Unforeseen(f"{statement.label}: {error.pgcode} {error.diag.message_primary}") from error
