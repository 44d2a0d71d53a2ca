"""The ends of jobs that are not written yet: a lone one is written at once, those of a busy worker many together.

There are two kinds, each with its statement: how a start ended (`Finish`), and how a job ended whose message this
worker dropped (`Unstarted`).

Finishes need no order among themselves, for each is about another start. Before everything else that the main process
reports of a start, its finish is written (`report_thread.py`): a process that has died may have reported its end
before.

An end whose row another transaction has locked delays no other: it is written by itself, once the lock is gone. One
that Postgres refuses is kept (`refusals.py`). Where one end in a batch may be the reason, the batches get smaller until
it is found; each call runs one statement, so that periodic duties never wait for more than that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from time import monotonic
from typing import Generic, TypeVar
from uuid import UUID

from celery_pgbeat.postgres.worker_queries import Finish, Unstarted, WorkerQueries
from celery_pgbeat.worker import refusals
from celery_pgbeat.worker.refusals import Refusals, is_kept, is_of_the_statement, is_outage

FLUSH_EVERY = 0.02  # seconds between two writings: by so much an end may be late in a busy worker
LOCKED_PAUSE = 0.25  # seconds until an end is told again whose row was locked
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds until refused ends are told again
AT_ONCE = 500  # ends in one statement

End = TypeVar("End", Finish, Unstarted)
# Ends, each with the time of its first refusal, if it had one.
Waiting = dict[End, "float | None"]

logger = logging.getLogger(__name__)


class EndBatch(Generic[End]):
    """What has ended and is not written; one thread's own."""

    def __init__(self, tell: Callable[[WorkerQueries, list[End]], set[UUID]], noted: Refusals) -> None:
        self._tell: Callable[[WorkerQueries, list[End]], set[UUID]] = tell
        self._noted = noted
        self._fresh: Waiting[End] = {}
        self._locked: Waiting[End] = {}
        self._refused: Waiting[End] = {}
        self._size = AT_ONCE
        self._write_at = 0.0
        self._tell_again_at = 0.0
        self._pause = 0.0
        self._try_again_at = 0.0
        self._is_closed = False  # until then: the statement itself is refused, so new ends are not tried either

    def __len__(self) -> int:
        return len(self._fresh) + len(self._locked) + len(self._refused)

    @property
    def refused(self) -> int:
        """How many ends Postgres has refused and does not know yet."""
        return sum(since is not None for ends in self._all() for since in ends.values())

    def add(self, ends: Iterable[End]) -> None:
        """Take in what has ended."""
        self._fresh.update(dict.fromkeys(ends))

    def unwritten(self) -> list[End]:
        """Return the ends of which Postgres does not know yet."""
        return [end for ends in self._all() for end in ends]

    def jobs(self) -> set[UUID]:
        """Return the jobs whose ends Postgres does not know yet."""
        return {_job(end) for end in self.unwritten()}

    def time_left(self) -> float | None:
        """Return the seconds until something is to be written, None if there is nothing."""
        due = [self._write_at] if self._fresh else []
        due += [self._tell_again_at] if self._locked else []
        due += [self._try_again_at] if self._refused else []
        return max(0.0, min(due) - monotonic()) if due else None

    def hurry(self) -> None:
        """Let what waits for its next try be tried now."""
        self._tell_again_at = self._try_again_at = 0.0

    def write(self, reports: WorkerQueries, *, all_of_them: bool = False) -> bool:
        """Write some of what is due, or of all that is fresh; return whether there was any.

        Raises:
            DatabaseUnavailable: what is not written is kept.
        """
        now = monotonic()
        if self._locked and now >= self._tell_again_at:
            self._fresh, self._locked = {**self._locked, **self._fresh}, {}
            all_of_them = True
        if self._refused and now >= self._try_again_at:
            self._fresh, self._refused = {**self._still_kept(now), **self._fresh}, {}
            self._is_closed = False
            all_of_them = True
        if self._is_closed:
            self._keep(list(self._fresh))
        if not self._fresh or not (all_of_them or now >= self._write_at):
            return False
        batch = list(islice(self._fresh, self._size))
        self._write(batch, reports)
        # What did not go into this statement has lingered long enough.
        self._write_at = now if self._fresh else now + FLUSH_EVERY
        return True

    def _write(self, batch: list[End], reports: WorkerQueries) -> None:
        try:
            locked = self._tell(reports, batch)
        except Exception as error:
            if is_outage(error):
                raise
            self._failed(batch, error)
            return
        self._size = min(AT_ONCE, self._size * 2)
        for end in batch:
            since = self._fresh.pop(end)
            self._pause = self._pause if since is None else 0.0
            if _job(end) in locked:
                self._locked[end] = since
                self._tell_again_at = monotonic() + LOCKED_PAUSE

    def _failed(self, batch: list[End], error: Exception) -> None:
        if is_of_the_statement(error):
            self._is_closed = True
            self._refuse(list(self._fresh), error)
        elif len(batch) > 1:
            # One of them cannot be written, whatever it is, and must not take the others with it.
            self._size = len(batch) // 2
        elif is_kept(error):
            self._refuse(batch, error)
        else:
            del self._fresh[batch[0]]
            logger.error("The end of job %s could not be reported and is dropped", _job(batch[0]), exc_info=error)

    def _refuse(self, ends: list[End], error: Exception) -> None:
        now = monotonic()
        if now >= self._try_again_at:
            self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
            self._try_again_at = now + self._pause
        self._keep(ends)
        self._noted.note(error)

    def _keep(self, ends: list[End]) -> None:
        now = monotonic()
        for end in ends:
            since = self._fresh.pop(end)
            self._refused[end] = now if since is None else since
        too_many = list(islice(self._refused, max(0, len(self._refused) - refusals.KEPT)))
        for end in too_many:
            del self._refused[end]
        self._noted.note_dropped(len(too_many))

    def _still_kept(self, now: float) -> Waiting[End]:
        """Return the refused ends that are not too old to be kept."""
        young = {end: since for end, since in self._refused.items() if since is None or now < since + refusals.KEPT_FOR}
        self._noted.note_dropped(len(self._refused) - len(young))
        return young

    def _all(self) -> tuple[Waiting[End], ...]:
        return self._fresh, self._locked, self._refused


def _job(end: Finish | Unstarted) -> UUID:
    return end.start.job if isinstance(end, Finish) else end.copy.job
