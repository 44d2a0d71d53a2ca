"""The finishes that are not written yet: a lone one is written at once, those of a busy worker many in one statement.

They need no order among themselves, for each is about another start. Against everything else that the main process
says of a start, its finish comes first (`courier.py`): whoever says "its process has died" says it of a process that
may have told its end before.

A finish whose row somebody else has locked stands in nobody's way: it is told again by itself, until it is heard.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice
from time import monotonic

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.reports import Finish, Reports, Start

LINGER = 0.02  # seconds between two writings: by so much a finish may be late in a busy worker
LOCKED_PAUSE = 0.25  # seconds until a finish is told again whose row was locked
AT_ONCE = 500  # finishes in one statement

logger = logging.getLogger(__name__)


class Finishes:
    """What has ended and is not written; one thread's own."""

    def __init__(self) -> None:
        self._fresh: dict[Finish, None] = {}
        self._locked: dict[Finish, None] = {}
        self._write_at = 0.0
        self._tell_again_at = 0.0

    def __len__(self) -> int:
        return len(self._fresh) + len(self._locked)

    def add(self, finishes: Iterable[Finish]) -> None:
        """Take in what has ended."""
        self._fresh.update(dict.fromkeys(finishes))

    def starts(self) -> list[Start]:
        """Return the starts of which Postgres does not know yet that they have ended."""
        return [finish.start for finish in (*self._fresh, *self._locked)]

    def time_left(self) -> float | None:
        """Return the seconds until something is to be written, None if there is nothing."""
        due = [self._write_at] if self._fresh else []
        due += [self._tell_again_at] if self._locked else []
        return max(0.0, min(due) - monotonic()) if due else None

    def write(self, reports: Reports, *, all_of_them: bool = False) -> None:
        """Write what is due, or all that is fresh.

        Raises:
            DatabaseUnavailable: what is not written is kept.
        """
        now = monotonic()
        if self._locked and now >= self._tell_again_at:
            self._write(self._locked, reports)
            self._tell_again_at = monotonic() + LOCKED_PAUSE
        if self._fresh and (all_of_them or now >= self._write_at):
            self._write_at = now + LINGER
            self._write(self._fresh, reports)

    def _write(self, finishes: dict[Finish, None], reports: Reports) -> None:
        for batch in _batches(list(finishes)):
            locked = self._told(batch, reports)
            for finish in batch:
                del finishes[finish]
            if locked:
                self._tell_again_at = monotonic() + LOCKED_PAUSE
                self._locked.update(dict.fromkeys(locked))

    def _told(self, batch: list[Finish], reports: Reports) -> list[Finish]:
        """Write some finishes; return those whose rows were locked."""
        try:
            jobs = reports.finish_many(batch)
        except DatabaseUnavailable:
            raise
        except Exception:
            if len(batch) > 1:
                # One of them cannot be written, whatever it is, and must not take the others with it.
                return [locked for finish in batch for locked in self._told([finish], reports)]
            logger.exception("The end of job %s could not be reported and is dropped", batch[0].start.job)
            return []
        return [finish for finish in batch if finish.start.job in jobs]


def _batches(finishes: list[Finish]) -> Iterable[list[Finish]]:
    rest = iter(finishes)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch
