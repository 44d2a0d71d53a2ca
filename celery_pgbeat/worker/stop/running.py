"""A job whose body runs in this process, and how it learns that it is to stop.

The row has a `stop_request`, and a job learns of it in two ways. `current().cancelled` reads the row, at most once a
second, in any pool. In a prefork pool the main process also sends a signal, because the task may be busy with
something else: the task gets SoftTimeLimitExceeded, as from a soft time limit.

        main process (stop_requests.py)    pool process
        stop_request is set ────signal──►  handler: which job runs here now? ── a thread: reads the row of that job
                                           handler: it is this very job  ◄──signal── the row has a stop_request
                                           raise SoftTimeLimitExceeded

The main process knows which process was given the job, not what that process does when the signal arrives: it may
run another job by then. So a signal means only "read your row". The handler raises the exception in the thread that
runs the tasks, and only in the job whose own row was read. A signal that arrives at the wrong moment is ignored; the
next check sends it again. A task that reads `cancelled` itself is not interrupted, so that it can end in its own way.

The signal is SIGURG, which a process without a handler ignores. (SIGUSR1 is billiard's own for soft limits, and its
handler raises in whatever runs.)
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
from typing import TYPE_CHECKING, Any, Protocol

from billiard.exceptions import SoftTimeLimitExceeded

if TYPE_CHECKING:  # the modules of tasks import `current`, also in processes that need no SQLAlchemy
    from celery_pgbeat.postgres.api_queries import ApiQueries
    from celery_pgbeat.postgres.worker_queries import Start, StopRequest
    from celery_pgbeat.settings import Settings

SIGNAL = signal.SIGURG
LOOK_EVERY = 1.0  # seconds between two reads of a row, however often its task asks

logger = logging.getLogger(__name__)


class JobContext(Protocol):
    """What a running job needs of its worker."""

    app: Any
    settings: Settings

    @property
    def api_queries(self) -> ApiQueries:
        """The statements by which a task changes its own row."""

    def stop_request_of(self, start: Start) -> StopRequest | None:
        """Read the stop request of a start from its row."""


class Running:
    """One start while its body runs: the header of its message, when it began, whether it is to stop."""

    def __init__(
        self, start: Start, header: Mapping[str, Any], soft_limit: timedelta | None, context: JobContext
    ) -> None:
        self.start = start
        self.header = header
        self.context = context
        self.is_requested = False
        self.knows = False  # its task knows of the request, by `cancelled` or by an exception
        self._read_at: float | None = None
        self._soft_limit = soft_limit
        self._began = monotonic()
        self._look_at = self._began
        self._has_warned = False

    @property
    def time_left(self) -> timedelta | None:
        """The time that is left of its soft time limit; None without one."""
        if self._soft_limit is None:
            return None
        return max(timedelta(0), self._soft_limit - timedelta(seconds=monotonic() - self._began))

    @property
    def is_looking(self) -> bool:
        """Whether its task has read `cancelled` within the last second, and so will probably read it again."""
        return self._read_at is not None and monotonic() < self._read_at + LOOK_EVERY

    def is_to_stop(self) -> bool:
        """Whether the job is to stop; False while Postgres is out of reach."""
        self._read_at = monotonic()
        if not self.is_requested and monotonic() >= self._look_at:
            self.look()
        self.knows = self.knows or self.is_requested
        return self.is_requested

    def look(self) -> None:
        """Read the row now."""
        try:
            self.is_requested = self.context.stop_request_of(self.start) is not None or self.is_requested
        except SoftTimeLimitExceeded:  # a time limit of the task
            raise
        except Exception as error:  # noqa: BLE001 - reading the row must not make the job fail
            if not self._has_warned:
                logger.warning("Job %s cannot read whether it is to stop: %s", self.start.job, error)
            self._has_warned = True
        self._look_at = monotonic() + LOOK_EVERY


class StopSignal:
    """Handles the stop signal in a pool process, which runs one task at a time, in its main thread."""

    def __init__(self) -> None:
        self._running: Running | None = None
        self._process: int | None = None

    def enter(self, running: Running) -> None:
        """Handle the signal for a job whose body is about to run."""
        if self._process != os.getpid() and threading.current_thread() is threading.main_thread():
            signal.signal(SIGNAL, self._handle)
            self._process = os.getpid()
        self._running = running

    def exit(self) -> None:
        """Ignore the signal: the body has ended."""
        self._running = None

    def _handle(self, *_: Any) -> None:
        running = self._running
        if running is None or running.knows:
            return
        if not running.is_requested:
            # Not threading.Thread: its start takes a lock that the interrupted code may hold.
            _thread.start_new_thread(self._look, (running,))
        elif not running.is_looking:
            running.knows = True
            raise SoftTimeLimitExceeded()

    def _look(self, running: Running) -> None:
        running.look()
        main = threading.main_thread().ident
        if running.is_requested and main is not None:
            signal.pthread_kill(main, SIGNAL)


def send_stop_signal(process: int) -> None:
    """Make a pool process read the row of the job that it runs."""
    with suppress(ProcessLookupError):
        os.kill(process, SIGNAL)
