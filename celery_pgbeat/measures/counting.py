"""Counts the events of one beat."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.measures.tally import Tally

if TYPE_CHECKING:
    from celery_pgbeat.planning import Decision
    from celery_pgbeat.postgres.beat_queries import Judged, Marked, Recovered, Submitted

MOST_UNSENT = 50_000  # jobs whose due time is remembered until they are sent


class DueAts:
    """When each unsent job was due. The cycles add to it, the delivery takes from it."""

    def __init__(self) -> None:
        self._known: dict[uuid.UUID, datetime] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, due_ats: Mapping[uuid.UUID, datetime]) -> None:
        """Remember some; beyond `MOST_UNSENT` the oldest are forgotten."""
        with self._lock:
            self._known.update(due_ats)
            while len(self._known) > MOST_UNSENT:
                del self._known[next(iter(self._known))]

    def take(self, jobs: Iterable[uuid.UUID]) -> list[datetime | None]:
        """Return when each job was due (None if that is not known), and forget it."""
        with self._lock:
            return [self._known.pop(job, None) for job in jobs]


class Counting(Observer):
    """Counts for one beat; a batch is counted at once, after its statement."""

    def __init__(self, tally: Tally, now: Callable[[], datetime]) -> None:
        self._tally = tally
        self._now = now
        self._due_ats = DueAts()

    def marked(self, rows: Marked, began: int) -> None:
        """Remember when the jobs were due that were submitted at once."""
        del began
        self._due_ats.add({row.job: row.next_run_at for row in rows.at_once})

    @contextmanager
    def submitting(self, decisions: Sequence[Decision], answers: list[Submitted]) -> Iterator[None]:
        """Count what is skipped or lost, and remember when the new jobs were due."""
        yield
        by_name = {answer.name: answer for answer in answers}
        skipped: Counter[str] = Counter()
        due_ats: dict[uuid.UUID, datetime] = {}
        for decision in decisions:
            answer = by_name.get(decision.row.name)
            if answer is None:
                continue
            if decision.skipped is not None:
                skipped[decision.skipped.reason] += decision.skipped.count
            if decision.job is None or decision.due_at is None:
                continue
            if answer.reason is not None:
                skipped[answer.reason] += 1
            elif not answer.waits:
                due_ats[decision.job] = decision.due_at
        self._due_ats.add(due_ats)
        self._tally.skip(skipped)
        self._tally.count(lost=sum(answer.lost is not None for answer in answers))

    @contextmanager
    def confirming(self, sent: Sequence[tuple[uuid.UUID, float]], locked: set[uuid.UUID]) -> Iterator[None]:
        """Count what is sent, and how late it was; a job whose row was locked is counted by a later confirm."""
        now = self._now()
        yield
        due_ats = self._due_ats.take(job for job, _ in sent if job not in locked)
        self._tally.count(sent=len(due_ats))
        self._tally.late(max(0.0, (now - due_at).total_seconds()) for due_at in due_ats if due_at is not None)

    def recovered(self, rows: Sequence[Recovered], began: int) -> None:
        """Count jobs that are sent again, and those that were recorded as skipped instead."""
        del began
        skipped = Counter(row.reason for row in rows if row.reason is not None)
        self._tally.skip(skipped)
        self._tally.count(recovered=len(rows) - skipped.total())

    def judged(self, jobs: Sequence[Judged]) -> None:
        """Count jobs that were given up."""
        self._tally.count(lost=sum(job.verdict == "lost" for job in jobs))

    def refused(self, jobs: Sequence[uuid.UUID], lost: int) -> None:
        """Count refusals."""
        self._tally.count(refused=len(jobs), lost=lost)

    def skipped(self, jobs: Sequence[uuid.UUID], reason: str, count: int) -> None:
        """Count jobs that are never sent."""
        del jobs
        self._tally.skip({reason: count})
