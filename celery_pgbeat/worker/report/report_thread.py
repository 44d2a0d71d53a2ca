"""A thread that writes reports to Postgres, so that no other thread waits for it.

In a worker's main process it also runs the periodic duties (heartbeat, pool watch, stop requests). A pool process
starts such a thread only when it could not write a report itself. While Postgres is away, reports wait in order, and
the thread tries again with growing pauses for as long as the process lives.

Duties come first: before each statement the thread checks whether one of them is due. However many reports wait, the
heartbeat is written in time; else a job that runs well would count as lost.

In each pass of its loop the thread empties its queue, then the pipe, and writes finishes before other reports. The
docstring of the package has the rule about the order of reports that needs this.
"""

from __future__ import annotations

import enum
import logging
import threading
from queue import Empty
from time import monotonic
from typing import Protocol

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import Finish, Start, WorkerQueries
from celery_pgbeat.worker.report.inbox import Inbox
from celery_pgbeat.worker.report.refusals import Refusals, is_outage
from celery_pgbeat.worker.report.report_pipe import ReportPipe
from celery_pgbeat.worker.report.report_queue import ReportQueue
from celery_pgbeat.worker.report.reports import Report, Retry

FLUSH_EVERY = 0.02  # seconds between two writes of finishes: a finish in a busy worker is late by at most this
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two tries while Postgres is away
WRITE_FOR = 0.2  # seconds of writing after which the thread reads its queue again
LAST_LOOK = 0.05  # seconds between two looks at the queue while the thread is stopping and has reports to write
RETRY_DUTY_AFTER = 1.0  # seconds, at most, until a duty that failed runs again

logger = logging.getLogger(__name__)


class Wake(enum.Enum):
    """What is put into the queue only to wake the thread."""

    STOP = enum.auto()
    PIPE = enum.auto()  # the pipe has something to read


class PeriodicDuty(Protocol):
    """Something that the thread does at an interval, and once more when it stops."""

    every: float  # seconds

    def run(self, queries: WorkerQueries) -> None:
        """Do it now."""

    def shutdown(self, queries: WorkerQueries) -> None:
        """Do it for the last time, when the thread stops."""


class ReportThread:
    """One thread, and a queue into which any thread (or signal handler) puts reports without waiting."""

    def __init__(self, queries: WorkerQueries, *duties: PeriodicDuty, report_pipe: ReportPipe | None = None) -> None:
        self._queries = queries
        self._duties = dict.fromkeys(duties, monotonic())  # when each of them is due
        self._report_pipe = report_pipe
        self._inbox: Inbox[Report | Wake] = Inbox()
        self._refusals = Refusals(lambda: self._finishes.kept + self._others.kept)
        self._finishes = ReportQueue(self._refusals, flush_every=FLUSH_EVERY)
        self._others = ReportQueue(self._refusals, first=self._finishes)
        self._thread: threading.Thread | None = None
        self._pause = 0.0
        self._paused_until = 0.0
        self._give_up_at: float | None = None
        self._is_ending = False

    def put(self, report: Report) -> None:
        """Queue a report to be written; never waits."""
        self._inbox.put(report)
        self.start()

    def unwritten(self) -> list[Start]:
        """Return the starts whose finish is not written yet; only duties may call it, in this thread."""
        return [report.start for report in self._finishes.unwritten() if isinstance(report, Finish)]

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pgbeat-reports", daemon=True)
            self._thread.start()
            if self._report_pipe is not None:
                self._report_pipe.watch(lambda: self._inbox.put(Wake.PIPE))

    def stop(self, within: float) -> None:
        """Write the reports that wait and end the thread, within this many seconds."""
        if self._thread is None:
            return
        self._give_up_at = monotonic() + within
        self._inbox.put(Wake.STOP)
        self._thread.join(within + 1)  # a second for the try that is under way
        if self._thread.is_alive():
            logger.error("Postgres did not answer within %.0f s: reports of this worker may be lost", within)
        self._thread = None

    def _run(self) -> None:
        is_over = False
        while not is_over:
            self._collect()
            try:
                self._deliver()
            except DatabaseUnavailable as error:
                self._rest(error)
            except Exception:  # the loop must go on
                logger.exception("The reports of this worker could not be delivered; trying again")
                self._rest(None)
            else:
                self._recovered()
            is_over = self._is_over()
        self._end()

    def _is_over(self) -> bool:
        if self._give_up_at is None:
            return False
        # Not before STOP was read from the queue: until then there may be a report before it.
        return (self._is_ending and not self._count()) or monotonic() >= self._give_up_at

    def _count(self) -> int:
        return len(self._finishes) + len(self._others)

    def _collect(self) -> None:
        """Wait for a report, for the next duty or for the end of a pause; take in all reports that are there."""
        while True:
            try:
                taken = self._inbox.get(self._time_left())
            except Empty:
                break
            self._take_in(taken)
        self._read_pipe()

    def _take_in(self, taken: Report | Wake) -> None:
        if taken is Wake.STOP:
            self._is_ending = True
            self._paused_until = 0.0
            self._finishes.hurry()
            self._others.hurry()
        elif taken is Wake.PIPE:
            self._read_pipe()
        elif isinstance(taken, Finish):
            self._finishes.add(taken)
        else:
            self._others.add(taken)

    def _read_pipe(self) -> None:
        if self._report_pipe is None:
            return
        reports = self._report_pipe.receive()
        for report in reports:
            if isinstance(report, Finish):
                self._finishes.add(report)
        # Before the reports that wait: one of them may be that the process has died.
        self._others.add_first([report for report in reports if isinstance(report, Retry)])

    def _time_left(self) -> float | None:
        now = monotonic()
        if self._pause:
            return max(0.0, self._paused_until - now)
        if self._is_ending and not self._count():
            return 0.0
        due = [max(0.0, min(self._duties.values()) - now)] if self._duties else []
        due += [LAST_LOOK] if self._is_ending else []
        due += [left for left in (self._finishes.time_left(), self._others.time_left()) if left is not None]
        return min(due, default=None)

    def _deliver(self) -> None:
        """Write what is due, for `WRITE_FOR` seconds; before each statement run the duties that are due."""
        until = monotonic() + WRITE_FOR
        self._run_duties()
        while self._write_some() and monotonic() < until:
            self._run_duties()
        self._refusals.look()

    def _run_duties(self) -> None:
        for duty, due_at in self._duties.items():
            if monotonic() < due_at:
                continue
            wait = duty.every
            try:
                duty.run(self._queries)
            except Exception as error:
                if is_outage(error):
                    raise
                self._refusals.note_duty(error)
                wait = min(wait, RETRY_DUTY_AFTER)
            self._duties[duty] = monotonic() + wait

    def _write_some(self) -> bool:
        """Write the next reports, in one statement; return whether there were any."""
        self._others.release_due()
        has_others = self._others.has_fresh
        if self._finishes.write(self._queries, flush=has_others or self._give_up_at is not None):
            return True
        return has_others and self._others.write(self._queries)

    def _rest(self, error: DatabaseUnavailable | None) -> None:
        if error and not self._pause:
            logger.warning("%s Reports of this worker wait until it is back.", error, extra={"action": "wait"})
        self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
        self._paused_until = monotonic() + self._pause

    def _recovered(self) -> None:
        if self._pause:
            logger.info("Postgres is back: the reports that waited are delivered", extra={"action": "resume"})
        self._pause = 0.0

    def _end(self) -> None:
        if not self._pause:
            try:
                self._sign_off()
            except DatabaseUnavailable as error:
                logger.warning("This worker could not sign off: %s", error)
        if lost := self._count():
            why = "Postgres is away" if self._pause else "Postgres did not take all reports"
            logger.error("%s: %d reports of this worker are lost", why, lost)

    def _sign_off(self) -> None:
        self._read_pipe()
        while self._finishes.write(self._queries, flush=True):
            pass
        for duty in self._duties:
            try:
                duty.shutdown(self._queries)
            except Exception as error:
                if is_outage(error):
                    raise
                self._refusals.note_duty(error)
