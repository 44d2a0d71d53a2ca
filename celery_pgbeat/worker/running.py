"""A job whose body runs in this process, and how it hears that it is to end.

The row says so (`ask`), and a job learns it in two ways. `current().cancelled` reads the row, at most once a second,
in any pool. And a process of a pool is rung up, because its task may be busy with something else: it gets
SoftTimeLimitExceeded, as from a soft time limit.

        main process (asks.py)             pool process
        the row is asked to end ──BELL──►  handler: which job runs here now? ── a thread: what does its row say?
                                           handler: it is this very job      ◄──BELL── it is asked to end
                                           raise SoftTimeLimitExceeded

Whoever rings knows which process was given the job, not what that process does when the signal arrives: it may have
gone on to another job. So a ring means no more than "look at your row". What is raised is raised by the handler, in
the thread that runs the tasks, between two steps of it: in the job whose own row was read, and in no other. A ring
that comes too early or too late finds nobody who was asked, and the next round rings again. A task that looks by
itself is not interrupted: it learns it from its next look, and may end in good order.

The bell is SIGURG, which a process that does not wait for it ignores. (SIGUSR1 is billiard's own for soft limits, and
its handler raises in whatever runs.)
"""

from __future__ import annotations

import _thread
import logging
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

from billiard.exceptions import SoftTimeLimitExceeded

if TYPE_CHECKING:
    from celery_pgbeat.postgres.reports import Start
    from celery_pgbeat.worker.agent import Agent

BELL = signal.SIGURG
LOOK_EVERY = 1.0  # seconds between two looks at a row, however often its task wants to know

logger = logging.getLogger(__name__)


class Running:
    """One start while its body runs: what the message said of it, when it began, whether it is to end."""

    def __init__(
        self,
        start: Start,
        header: Mapping[str, Any],
        timebox: timedelta | None,
        agent: Agent,
    ) -> None:
        self.start = start
        self.header = header
        self.agent = agent
        self.is_asked = False
        self.knows = False  # its task has been told, by an answer or by an exception
        self._read_at: float | None = None
        self._timebox = timebox
        self._began = monotonic()
        self._look_at = self._began
        self._unheard = False

    @property
    def time_left(self) -> timedelta | None:
        """What is left of its timebox; None without one."""
        if self._timebox is None:
            return None
        return max(timedelta(0), self._timebox - timedelta(seconds=monotonic() - self._began))

    @property
    def is_looking(self) -> bool:
        """Whether its task has looked so recently that it will look again."""
        return self._read_at is not None and monotonic() < self._read_at + LOOK_EVERY

    def is_to_end(self) -> bool:
        """Tell the task whether somebody wants the job to end. While Postgres is away, nobody was heard to."""
        self._read_at = monotonic()
        if not self.is_asked and monotonic() >= self._look_at:
            self.look()
        self.knows = self.knows or self.is_asked
        return self.is_asked

    def look(self) -> None:
        """Read the row now."""
        try:
            self.is_asked = self.agent.line.reports.ask_of(self.start) is not None or self.is_asked
        except SoftTimeLimitExceeded:  # a time limit that strikes just now is the task's own business
            raise
        except Exception as error:  # noqa: BLE001 - a question about the job must not be what it fails of
            if not self._unheard:
                logger.warning("Job %s cannot learn whether it is asked to end: %s", self.start.job, error)
            self._unheard = True
        self._look_at = monotonic() + LOOK_EVERY


class Bell:
    """Hears the rings in a process of a pool; there is one task at a time, in its main thread."""

    def __init__(self) -> None:
        self._running: Running | None = None
        self._process: int | None = None

    def attend(self, running: Running) -> None:
        """Listen for a job whose body is about to run."""
        if self._process != os.getpid() and threading.current_thread() is threading.main_thread():
            signal.signal(BELL, self._hear)
            self._process = os.getpid()
        self._running = running

    def leave(self) -> None:
        """Listen for nobody: the body has ended."""
        self._running = None

    def _hear(self, *_: Any) -> None:
        running = self._running
        if running is None or running.knows:
            return
        if not running.is_asked:
            # Not threading.Thread: its start takes a lock that the interrupted code may hold.
            _thread.start_new_thread(self._look, (running,))
        elif not running.is_looking:
            running.knows = True
            raise SoftTimeLimitExceeded()

    def _look(self, running: Running) -> None:
        running.look()
        main = threading.main_thread().ident
        if running.is_asked and main is not None:
            signal.pthread_kill(main, BELL)


def ring(process: int) -> None:
    """Have a process of a pool look at the row of its job."""
    with suppress(ProcessLookupError):
        os.kill(process, BELL)
