"""Carries reports to Postgres from a thread of its own, so that whoever reports never waits.

In a worker's main process it also makes the rounds (heartbeats, children, asks), and writes the finishes, its own
and those of the pool processes (`letterbox.py`); in a pool process it is there only once Postgres was away when a
task ended. Nothing is lost while Postgres is away: reports wait in order, and are tried again with growing pauses for
as long as the process lives.

In each turn the letterbox is emptied after the box, and finishes are written before reports. So what a process has
said before it died is in the row before the report of its death is delivered, and changes nothing there.
"""

from __future__ import annotations

import enum
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.postgres.reports import Finish, Reports, Start
from celery_pgbeat.worker.finishes import Finishes
from celery_pgbeat.worker.letterbox import Letterbox

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two tries while Postgres is away

Report = Callable[[Reports], object]
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
        self._box: queue.SimpleQueue[Report | Finish | Call] = queue.SimpleQueue()
        self._finishes = Finishes()
        self._waiting: deque[Report] = deque()
        self._thread: threading.Thread | None = None
        self._pause = 0.0
        self._paused_until = 0.0
        self._give_up_at: float | None = None
        self._is_ending = False

    def put(self, report: Report | Finish) -> None:
        """Leave a report to be delivered; never waits."""
        self._box.put(report)
        self.start()

    def unwritten(self) -> list[Start]:
        """Return the starts that have ended and still count as running; for rounds, in the courier's own thread."""
        return self._finishes.starts()

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
            except PgBeatError as error:
                self._rest(error)
            except Exception:  # the loop must go on, whatever one report was
                logger.exception("A report could not be delivered and is dropped")
                if self._waiting:
                    self._waiting.popleft()
                self._rest(None)
            else:
                self._recovered()
            is_over = self._is_over()
        self._end()

    def _is_over(self) -> bool:
        if self._give_up_at is None:
            return False
        # Not before END has come out of the box: until then something may still lie before it.
        return (self._is_ending and not self._waiting and not self._finishes) or monotonic() >= self._give_up_at

    def _collect(self) -> None:
        """Wait for a report, for the next rounds or for the end of a pause; take in all reports that are there."""
        while True:
            try:
                word = self._box.get(timeout=self._time_left())
            except queue.Empty:
                break
            self._take_in(word)
        self._take_letters()

    def _take_in(self, word: Report | Finish | Call) -> None:
        if word is Call.END:
            self._is_ending = True
            self._paused_until = 0.0
        elif word is Call.LETTERS:
            self._take_letters()
        elif isinstance(word, Finish):
            self._finishes.add([word])
        else:
            self._waiting.append(word)

    def _take_letters(self) -> None:
        if self._letterbox is not None:
            self._finishes.add(self._letterbox.take())

    def _time_left(self) -> float | None:
        now = monotonic()
        if self._pause:
            return max(0.0, self._paused_until - now)
        if self._waiting or self._is_ending:
            return 0.0
        due = [max(0.0, min(self._rounds.values()) - now)] if self._rounds else []
        if (left := self._finishes.time_left()) is not None:
            due.append(left)
        return min(due, default=None)

    def _deliver(self) -> None:
        self._finishes.write(self._reports, all_of_them=bool(self._waiting) or self._give_up_at is not None)
        while self._waiting:
            self._waiting[0](self._reports)
            self._waiting.popleft()
        for rounds, due_at in self._rounds.items():
            if monotonic() >= due_at:
                rounds.go(self._reports)
                self._rounds[rounds] = monotonic() + rounds.every

    def _rest(self, error: PgBeatError | None) -> None:
        if error and not self._pause:
            logger.warning("%s Reports of this worker wait until it is back.", error, extra={"action": "wait"})
        self._pause = min(LONGEST_PAUSE, self._pause * 2 or FIRST_PAUSE)
        self._paused_until = monotonic() + self._pause

    def _recovered(self) -> None:
        if self._pause:
            logger.info("Postgres is back, all reports are delivered", extra={"action": "resume"})
        self._pause = 0.0

    def _end(self) -> None:
        lost = len(self._waiting) + len(self._finishes)
        if lost:
            logger.error("Postgres is away: %d reports of this worker are lost", lost)
        elif not self._pause:
            try:
                self._take_letters()
                self._finishes.write(self._reports, all_of_them=True)
                for rounds in self._rounds:
                    rounds.end(self._reports)
            except PgBeatError as error:
                logger.warning("This worker could not sign off: %s", error)
