"""The reports that cannot be delivered yet although Postgres is there, until they are tried again.

They delay no report of another job. The order among the reports of one job stays: what comes later waits behind what
is kept. And while Postgres refuses a statement, whatever its values, no report that needs it is tried meanwhile.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from celery_pgbeat.postgres.worker_queries import Unstarted, WorkerQueries
from celery_pgbeat.worker import refusals
from celery_pgbeat.worker.refusals import Refusals, is_of_the_statement

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two tries

Report = Callable[[WorkerQueries], object]


@dataclass(slots=True, eq=False)
class Entry:
    """A report that waits: the job that it is about, and when Postgres refused it first."""

    report: Report | Unstarted
    job: uuid.UUID | None
    refused_at: float | None = None

    @property
    def statement(self) -> object:
        """What it has in common with other reports that Postgres refuses for the same reason."""
        return getattr(self.report, "func", self.report)


class Kept:
    """The reports that wait for their next try, oldest first; one thread's own."""

    def __init__(self, noted: Refusals) -> None:
        self._noted = noted
        self._entries: deque[Entry] = deque()
        self._jobs: set[uuid.UUID | None] = set()
        self._refused: set[object] = set()  # statements
        self._pause = 0.0
        self._has_refused = False  # since what was kept was taken last
        self._again_at = 0.0

    def __len__(self) -> int:
        return len(self._entries)

    def is_before(self, entry: Entry) -> bool:
        """Whether a report has to wait: behind another one of its job, or because its statement is refused."""
        return (entry.job is not None and entry.job in self._jobs) or entry.statement in self._refused

    def add(self, entry: Entry) -> None:
        """Keep a report."""
        if not self._entries:
            self._again_at = monotonic() + max(self._pause, FIRST_PAUSE)
        self._entries.append(entry)
        self._jobs.add(entry.job)
        if len(self._entries) > refusals.KEPT:
            self._entries.popleft()
            self._noted.note_dropped(1)

    def refuse(self, entry: Entry, error: Exception) -> None:
        """Keep a report that Postgres has refused."""
        if entry.refused_at is None:
            entry.refused_at = monotonic()
        if is_of_the_statement(error):
            self._refused.add(entry.statement)
        if not self._has_refused:
            self._has_refused = True
            self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
        self.add(entry)
        self._noted.note(error)

    def time_left(self) -> float | None:
        """Return the seconds until something is to be tried again, None if there is nothing."""
        return max(0.0, self._again_at - monotonic()) if self._entries else None

    def hurry(self) -> None:
        """Let what is kept be tried now."""
        self._again_at = 0.0

    def take_due(self) -> list[Entry]:
        """Return all that is kept once it is to be tried again, but for what has been kept for too long."""
        now = monotonic()
        if not self._entries or now < self._again_at:
            return []
        refused_after = now - refusals.KEPT_FOR
        due = [entry for entry in self._entries if entry.refused_at is None or entry.refused_at > refused_after]
        self._noted.note_dropped(len(self._entries) - len(due))
        if not self._has_refused:
            self._pause = 0.0
        self._has_refused = False
        self._entries.clear()
        self._jobs.clear()
        self._refused.clear()
        return due
