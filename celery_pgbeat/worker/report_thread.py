"""A thread that writes reports to Postgres, so that no other thread waits for it.

In a worker's main process it also runs the periodic duties (heartbeat, pool watch, stop requests), and writes how jobs
ended: in this process, and in the pool processes (`report_pipe.py`). A pool process starts such a thread only when it
could not write a report itself. While Postgres is away, reports wait in order, and the thread tries again with growing
pauses for as long as the process lives. A report that Postgres refuses is kept, within bounds (`refusals.py`), and
delays nothing else.

Duties come first: before each statement the thread checks whether one of them is due. However many reports wait, the
heartbeat is written in time; else a job that runs well would count as lost.

In each turn the thread empties the queue, then the pipe, and writes finishes before other reports. So what a process
reported before it died is in the row before the report of its death, which then changes nothing. While a finish is not
written (its row is locked, or Postgres refused it), later reports of that job wait for it.
"""

from __future__ import annotations

import enum
import logging
import queue
import threading
import uuid
from collections import deque
from functools import partial
from time import monotonic
from typing import Protocol

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.worker_queries import Finish, Retry, Start, Unstarted, WorkerQueries
from celery_pgbeat.worker.end_batch import AT_ONCE, EndBatch
from celery_pgbeat.worker.kept import Entry, Kept, Report
from celery_pgbeat.worker.refusals import Refusals, is_kept, is_outage
from celery_pgbeat.worker.report_pipe import ReportPipe

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two tries while Postgres is away
TURN = 0.2  # seconds of writing after which the thread reads its queue again
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

    def run(self, reports: WorkerQueries) -> None:
        """Do it now."""

    def shutdown(self, reports: WorkerQueries) -> None:
        """Do what is to be done last."""


class ReportThread:
    """One thread, and a queue into which any thread (or signal handler) puts reports without waiting."""

    def __init__(self, reports: WorkerQueries, *duties: PeriodicDuty, report_pipe: ReportPipe | None = None) -> None:
        self._reports = reports
        self._duties = dict.fromkeys(duties, monotonic())  # when each of them is due
        self._report_pipe = report_pipe
        # SimpleQueue alone may be put to by a signal handler that interrupts another put.
        self._queue: queue.SimpleQueue[Entry | Finish | Wake] = queue.SimpleQueue()
        self._refusals = Refusals(self._count_refused)
        self._finishes: EndBatch[Finish] = EndBatch(lambda to, ends: to.finish_many(ends), self._refusals)
        self._unstarted: EndBatch[Unstarted] = EndBatch(lambda to, ends: to.end_unstarted_many(ends), self._refusals)
        self._waiting: deque[Entry] = deque()
        self._kept = Kept(self._refusals)
        self._thread: threading.Thread | None = None
        self._pause = 0.0
        self._paused_until = 0.0
        self._give_up_at: float | None = None
        self._is_ending = False

    def put(self, report: Report | Finish | Unstarted, job: uuid.UUID | None = None) -> None:
        """Queue a report to be written, in order among those of its job; never waits."""
        self._queue.put(report if isinstance(report, Finish) else Entry(report, job))
        self.start()

    def unwritten(self) -> list[Start]:
        """Return the starts that have ended and still count as running; only duties may call it, in this thread."""
        return [finish.start for finish in self._finishes.unwritten()]

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pgbeat-reports", daemon=True)
            self._thread.start()
            if self._report_pipe is not None:
                self._report_pipe.watch(lambda: self._queue.put(Wake.PIPE))

    def stop(self, within: float) -> None:
        """Deliver what waits and end the thread, within so many seconds."""
        if self._thread is None:
            return
        self._give_up_at = monotonic() + within
        self._queue.put(Wake.STOP)
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
            except Exception:  # the loop must go on, whatever it was
                logger.exception("The reports of this worker could not be delivered; trying again")
                self._rest(None)
            else:
                self._recovered()
            is_over = self._is_over()
        self._end()

    def _is_over(self) -> bool:
        if self._give_up_at is None:
            return False
        # Not before STOP has come out of the queue: until then a report may still be before it.
        return (self._is_ending and not self._count()) or monotonic() >= self._give_up_at

    def _count(self) -> int:
        return len(self._waiting) + len(self._kept) + len(self._finishes) + len(self._unstarted)

    def _count_refused(self) -> int:
        return len(self._kept) + self._finishes.refused + self._unstarted.refused

    def _collect(self) -> None:
        """Wait for a report, for the next duty or for the end of a pause; take in all reports that are there."""
        while True:
            try:
                word = self._queue.get(timeout=self._time_left())
            except queue.Empty:
                break
            self._take_in(word)
        self._read_pipe()

    def _take_in(self, word: Entry | Finish | Wake) -> None:
        if word is Wake.STOP:
            self._is_ending = True
            self._paused_until = 0.0
            for waiting in (self._finishes, self._unstarted, self._kept):
                waiting.hurry()
        elif word is Wake.PIPE:
            self._read_pipe()
        elif isinstance(word, Finish):
            self._finishes.add([word])
        else:
            self._waiting.append(word)

    def _read_pipe(self) -> None:
        if self._report_pipe is None:
            return
        ends = self._report_pipe.receive()
        self._finishes.add(end for end in ends if isinstance(end, Finish))
        # Before what waits: the report of its process' death may be there already.
        self._waiting.extendleft(_retried(end) for end in ends if isinstance(end, Retry))

    def _time_left(self) -> float | None:
        now = monotonic()
        if self._pause:
            return max(0.0, self._paused_until - now)
        if self._waiting or (self._is_ending and not self._count()):
            return 0.0
        due = [max(0.0, min(self._duties.values()) - now)] if self._duties else []
        due += [LAST_LOOK] if self._is_ending else []
        for waiting in (self._finishes, self._unstarted, self._kept):
            if (left := waiting.time_left()) is not None:
                due.append(left)
        return min(due, default=None)

    def _deliver(self) -> None:
        """Write what is due, for one turn; before each statement run the duties that are due."""
        until = monotonic() + TURN
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
                duty.run(self._reports)
            except Exception as error:
                if is_outage(error):
                    raise
                self._refusals.note_duty(error)
                wait = min(wait, RETRY_DUTY_AFTER)
            self._duties[duty] = monotonic() + wait

    def _write_some(self) -> bool:
        """Write what comes next, in one statement; return whether there was anything."""
        self._waiting.extendleft(reversed(self._kept.take_due()))
        all_of_them = bool(self._waiting) or self._give_up_at is not None
        if self._finishes.write(self._reports, all_of_them=all_of_them):
            return True
        if self._unstarted.write(self._reports, all_of_them=True):
            return True
        if self._waiting:
            self._deliver_next()
            return True
        return False

    def _deliver_next(self) -> None:
        entry = self._waiting[0]
        if self._kept.is_before(entry) or (entry.job is not None and entry.job in self._finishes.jobs()):
            self._kept.add(self._waiting.popleft())
        elif isinstance(entry.report, Unstarted):
            self._gather()
        else:
            self._write(entry, entry.report)

    def _gather(self) -> None:
        """Take the ends of unstarted jobs that come next out of the queue, to be written in one statement."""
        told: list[Unstarted] = []
        while self._waiting and len(told) < AT_ONCE and not self._kept.is_before(self._waiting[0]):
            report = self._waiting[0].report
            if not isinstance(report, Unstarted):
                break
            told.append(report)
            self._waiting.popleft()
        self._unstarted.add(told)

    def _write(self, entry: Entry, report: Report) -> None:
        try:
            report(self._reports)
        except Exception as error:
            if is_outage(error):
                raise
            if is_kept(error):
                self._kept.refuse(entry, error)
            else:
                logger.exception("A report could not be delivered and is dropped")
        self._waiting.popleft()

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
        while self._finishes.write(self._reports, all_of_them=True):
            pass
        for duty in self._duties:
            try:
                duty.shutdown(self._reports)
            except Exception as error:
                if is_outage(error):
                    raise
                self._refusals.note_duty(error)


def _retried(end: Retry) -> Entry:
    return Entry(partial(WorkerQueries.retry, start=end.start, delay=end.delay, error=end.error), end.start.job)
