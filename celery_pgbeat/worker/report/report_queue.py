"""The reports that the report thread has taken in and not written yet, in order.

Reports of one kind that follow each other are written in one statement, if there is one for many. A report that cannot
be written now delays no report of another job; a later report of its job waits for it:

- Another transaction has locked its row: it is tried again a moment later.
- Postgres refuses the statement itself (an older schema, a missing right): all reports of that kind are kept until the
  next try, and are not tried one by one meanwhile.
- Postgres refuses this one (`refusals.py`): it is kept. If one report in a batch may be the reason, the batches get
  smaller until it is found.
- Postgres can never take its value: it is dropped.

Each call of `write` runs one statement at most, so that periodic duties never wait for more than that.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from time import monotonic
from uuid import UUID

from celery_pgbeat.postgres.worker_queries import WorkerQueries
from celery_pgbeat.worker.report import refusals
from celery_pgbeat.worker.report.refusals import Refusals, is_kept, is_of_the_statement, is_outage
from celery_pgbeat.worker.report.reports import Killed, Report, Requeue, can_share, job_of, write_batch

LOCKED_PAUSE = 0.25  # seconds until a report whose row was locked is written again
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds until refused reports are tried again
AT_ONCE = 500  # reports in one statement

logger = logging.getLogger(__name__)


class ReportQueue:
    """Reports that wait to be written; used by one thread only.

    Reports are written at most every `flush_every` seconds. A report also waits for a report of its job that the queue
    `first` keeps.
    """

    def __init__(self, log: Refusals, *, flush_every: float = 0.0, first: ReportQueue | None = None) -> None:
        self._log = log
        self._flush_every = flush_every
        self._first = first
        self._fresh: OrderedDict[Report, None] = OrderedDict()
        self._locked: dict[Report, None] = {}
        self._kept: OrderedDict[Report, None] = OrderedDict()
        self._kept_since: dict[Report, float] = {}  # also of those that are being tried again
        self._blocked_jobs: set[UUID] = set()  # the jobs of the locked and the kept reports
        self._refused_kinds: set[type] = set()
        self._batch_size = AT_ONCE
        self._pause = 0.0
        self._flush_at = self._locked_until = self._try_again_at = 0.0

    def __len__(self) -> int:
        return len(self._fresh) + len(self._locked) + len(self._kept)

    @property
    def kept(self) -> int:
        """How many reports have been kept and are not written yet."""
        return len(self._kept_since)

    @property
    def has_fresh(self) -> bool:
        """Whether there are reports that can be tried now."""
        return bool(self._fresh)

    def add(self, report: Report) -> None:
        """Take in a report, behind all others."""
        self._fresh[report] = None

    def add_first(self, reports: Sequence[Report]) -> None:
        """Take in reports, before all others."""
        for report in reversed(reports):
            self._fresh[report] = None
            self._fresh.move_to_end(report, last=False)

    def unwritten(self) -> list[Report]:
        """Return the reports of which Postgres does not know yet."""
        return [*self._fresh, *self._locked, *self._kept]

    def time_left(self) -> float | None:
        """Return the seconds until a report is to be written, None if there is none."""
        due = [self._flush_at] if self._fresh else []
        due += [self._locked_until] if self._locked else []
        due += [self._try_again_at] if self._kept else []
        return max(0.0, min(due) - monotonic()) if due else None

    def hurry(self) -> None:
        """Let the reports that wait for their next try be tried now."""
        self._locked_until = self._try_again_at = 0.0

    def release_due(self) -> None:
        """Put the reports whose next try is due before the fresh ones."""
        now = monotonic()
        has_locked = bool(self._locked) and now >= self._locked_until
        has_kept = bool(self._kept) and now >= self._try_again_at
        due: list[Report] = []
        if has_locked:
            due += self._locked
            self._locked.clear()
        if has_kept:
            self._drop([report for report in self._kept if now >= self._kept_since[report] + refusals.KEPT_FOR])
            due += self._kept
            self._kept.clear()
            self._refused_kinds.clear()
        if has_locked or has_kept:
            self._blocked_jobs = {job_of(report) for report in (*self._locked, *self._kept)}
            self.add_first(due)
            self._flush_at = now

    def write(self, queries: WorkerQueries, *, flush: bool = False) -> bool:
        """Write some of the reports that are due, with `flush` of all; return whether there were any.

        Raises:
            DatabaseUnavailable: what is not written stays in the queue.
        """
        self.release_due()
        if not self._fresh or not (flush or monotonic() >= self._flush_at):
            return False
        if batch := self._next_batch():
            self._write(batch, queries)
        self._drop(list(islice(self._kept, max(0, len(self._kept) - refusals.KEPT))))
        return True

    def _next_batch(self) -> list[Report]:
        """Return the next reports that one statement can write; keep those that have to wait."""
        batch: list[Report] = []
        for report in list(islice(self._fresh, self._batch_size)):
            if self._has_to_wait(report):
                self._keep(report)
            elif not batch or can_share(batch[0], report):
                batch.append(report)
            else:
                break
        return batch

    def _has_to_wait(self, report: Report) -> bool:
        job = job_of(report)
        return (
            type(report) in self._refused_kinds
            or job in self._blocked_jobs
            or (self._first is not None and job in self._first._blocked_jobs)
        )

    def _write(self, batch: list[Report], queries: WorkerQueries) -> None:
        try:
            locked = write_batch(batch, queries)
        except Exception as error:
            if is_outage(error):
                raise
            self._failed(batch, error)
            return
        self._batch_size = min(AT_ONCE, self._batch_size * 2)
        for report in batch:
            if job_of(report) in locked:
                self._fresh.pop(report)
                self._locked[report] = None
                self._blocked_jobs.add(job_of(report))
                self._locked_until = monotonic() + LOCKED_PAUSE
            elif self._remove(report):
                self._pause = 0.0
        # Reports that did not go into this statement have waited long enough.
        self._flush_at = monotonic() + (0.0 if self._fresh else self._flush_every)

    def _failed(self, batch: list[Report], error: Exception) -> None:
        if is_of_the_statement(error):
            self._refused_kinds.add(type(batch[0]))
        elif len(batch) > 1:
            # One of them cannot be written, whatever the reason, and must not stop the others.
            self._batch_size = len(batch) // 2
            return
        elif not is_kept(error):
            logger.error("The report of job %s cannot be written and is dropped", job_of(batch[0]), exc_info=error)
            self._remove(batch[0])
            return
        if (now := monotonic()) >= self._try_again_at:
            self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
            self._try_again_at = now + self._pause
        for report in batch:
            self._keep(report)
        self._log.note(error)

    def _keep(self, report: Report) -> None:
        now = monotonic()
        if not self._kept:
            self._try_again_at = max(self._try_again_at, now + FIRST_PAUSE)
        del self._fresh[report]
        self._kept[report] = None
        self._kept_since.setdefault(report, now)
        self._blocked_jobs.add(job_of(report))

    def _drop(self, reports: list[Report]) -> None:
        """Drop kept reports, which are too many or too old."""
        for report in reports:
            del self._kept[report], self._kept_since[report]
        self._log.note_dropped(len(reports))

    def _remove(self, report: Report) -> bool:
        """Remove a report that is written, or never can be; return whether it was kept before."""
        del self._fresh[report]
        if isinstance(report, Requeue | Killed) and report.done is not None:
            report.done()
        return self._kept_since.pop(report, None) is not None
