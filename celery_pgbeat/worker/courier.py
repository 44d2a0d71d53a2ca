"""Carries reports to Postgres from a thread of its own, so that whoever reports never waits.

In a worker's main process it also makes the rounds (heartbeats, children, asks), and writes the ends of jobs, its own
and those of the pool processes (`letterbox.py`); in a pool process it is there only once a report could not be
delivered when a task ended. Nothing is lost while Postgres is away: reports wait in order, and are tried again with
growing pauses for as long as the process lives. What Postgres refuses although it is there is kept, within bounds
(`refusals.py`), and delays nothing else.

The rounds come first: before each statement the thread looks whether one of them is due. However many reports wait,
the heartbeat goes out in time, or a job that runs well would count as lost.

In each turn the letterbox is emptied after the box, and finishes are written before reports. So what a process has
said before it died is in the row before the report of its death is delivered, and changes nothing there. Where a
finish is not written yet (its row is locked, or Postgres refused it), later reports of that job wait for it.
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
from celery_pgbeat.postgres.reports import Finish, Reports, Retry, Start, Unstarted
from celery_pgbeat.worker.ends import AT_ONCE, Ends
from celery_pgbeat.worker.kept import Entry, Kept, Report
from celery_pgbeat.worker.letterbox import Letterbox
from celery_pgbeat.worker.refusals import Refusals, is_kept, is_outage

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two tries while Postgres is away
TURN = 0.2  # seconds of writing after which the thread looks again at what has been left meanwhile
LAST_LOOK = 0.05  # seconds between two looks of a thread that is to end, and has something left to write
ROUND_AGAIN = 1.0  # seconds, at most, until a round is made again that failed

logger = logging.getLogger(__name__)


class Call(enum.Enum):
    """What is put into the box only to wake the thread."""

    END = enum.auto()
    LETTERS = enum.auto()


class Rounds(Protocol):
    """What a courier does besides carrying: something every so often, and something at the end."""

    every: float  # seconds

    def go(self, reports: Reports) -> None:
        """Do it now."""

    def end(self, reports: Reports) -> None:
        """Do what is to be done last."""


class Courier:
    """One thread, and a box into which any thread (or signal handler) drops reports without waiting."""

    def __init__(self, reports: Reports, *rounds: Rounds, letterbox: Letterbox | None = None) -> None:
        self._reports = reports
        self._rounds = dict.fromkeys(rounds, monotonic())  # when each of them is due
        self._letterbox = letterbox
        # SimpleQueue alone may be put to by a signal handler that interrupts another put.
        self._box: queue.SimpleQueue[Entry | Finish | Call] = queue.SimpleQueue()
        self._refusals = Refusals(self._count_refused)
        self._finishes: Ends[Finish] = Ends(lambda to, ends: to.finish_many(ends), self._refusals)
        self._unstarted: Ends[Unstarted] = Ends(lambda to, ends: to.end_unstarted_many(ends), self._refusals)
        self._waiting: deque[Entry] = deque()
        self._kept = Kept(self._refusals)
        self._thread: threading.Thread | None = None
        self._pause = 0.0
        self._paused_until = 0.0
        self._give_up_at: float | None = None
        self._is_ending = False

    def put(self, report: Report | Finish | Unstarted, job: uuid.UUID | None = None) -> None:
        """Leave a report to be delivered, in order among those of its job; never waits."""
        self._box.put(report if isinstance(report, Finish) else Entry(report, job))
        self.start()

    def unwritten(self) -> list[Start]:
        """Return the starts that have ended and still count as running; for rounds, in the courier's own thread."""
        return [finish.start for finish in self._finishes.unwritten()]

    def start(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pgbeat-courier", daemon=True)
            self._thread.start()
            if self._letterbox is not None:
                self._letterbox.watch(lambda: self._box.put(Call.LETTERS))

    def stop(self, within: float) -> None:
        """Deliver what waits and end the thread, within so many seconds."""
        if self._thread is None:
            return
        self._give_up_at = monotonic() + within
        self._box.put(Call.END)
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
        # Not before END has come out of the box: until then something may still lie before it.
        return (self._is_ending and not self._count()) or monotonic() >= self._give_up_at

    def _count(self) -> int:
        return len(self._waiting) + len(self._kept) + len(self._finishes) + len(self._unstarted)

    def _count_refused(self) -> int:
        return len(self._kept) + self._finishes.refused + self._unstarted.refused

    def _collect(self) -> None:
        """Wait for a report, for the next rounds or for the end of a pause; take in all reports that are there."""
        while True:
            try:
                word = self._box.get(timeout=self._time_left())
            except queue.Empty:
                break
            self._take_in(word)
        self._take_letters()

    def _take_in(self, word: Entry | Finish | Call) -> None:
        if word is Call.END:
            self._is_ending = True
            self._paused_until = 0.0
            for waiting in (self._finishes, self._unstarted, self._kept):
                waiting.hurry()
        elif word is Call.LETTERS:
            self._take_letters()
        elif isinstance(word, Finish):
            self._finishes.add([word])
        else:
            self._waiting.append(word)

    def _take_letters(self) -> None:
        if self._letterbox is None:
            return
        told = self._letterbox.take()
        self._finishes.add(end for end in told if isinstance(end, Finish))
        # Before what waits: the report of its process' death may be there already.
        self._waiting.extendleft(_retried(end) for end in told if isinstance(end, Retry))

    def _time_left(self) -> float | None:
        now = monotonic()
        if self._pause:
            return max(0.0, self._paused_until - now)
        if self._waiting or (self._is_ending and not self._count()):
            return 0.0
        due = [max(0.0, min(self._rounds.values()) - now)] if self._rounds else []
        due += [LAST_LOOK] if self._is_ending else []
        for waiting in (self._finishes, self._unstarted, self._kept):
            if (left := waiting.time_left()) is not None:
                due.append(left)
        return min(due, default=None)

    def _deliver(self) -> None:
        """Write what is due, for one turn; before each statement the rounds that are due are made."""
        until = monotonic() + TURN
        self._make_rounds()
        while self._write_some() and monotonic() < until:
            self._make_rounds()
        self._refusals.look()

    def _make_rounds(self) -> None:
        for rounds, due_at in self._rounds.items():
            if monotonic() < due_at:
                continue
            wait = rounds.every
            try:
                rounds.go(self._reports)
            except Exception as error:
                if is_outage(error):
                    raise
                self._refusals.note_round(error)
                wait = min(wait, ROUND_AGAIN)
            self._rounds[rounds] = monotonic() + wait

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
            self._tell(entry, entry.report)

    def _gather(self) -> None:
        """Take the ends of unstarted jobs that come next out of the row, to be written in one statement."""
        told: list[Unstarted] = []
        while self._waiting and len(told) < AT_ONCE and not self._kept.is_before(self._waiting[0]):
            report = self._waiting[0].report
            if not isinstance(report, Unstarted):
                break
            told.append(report)
            self._waiting.popleft()
        self._unstarted.add(told)

    def _tell(self, entry: Entry, report: Report) -> None:
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
        self._take_letters()
        while self._finishes.write(self._reports, all_of_them=True):
            pass
        for rounds in self._rounds:
            try:
                rounds.end(self._reports)
            except Exception as error:
                if is_outage(error):
                    raise
                self._refusals.note_round(error)


def _retried(end: Retry) -> Entry:
    return Entry(partial(Reports.retry, start=end.start, delay=end.delay, error=end.error), end.start.job)
