"""Threads that must not end before they are asked to.

Python prints nothing when a SystemExit ends a thread, and whatever waits for such a thread waits forever. A time
limit, a cancelled coroutine or a user's own `sys.exit` may raise one anywhere. So each lasting thread of a beat keeps
the error that ended it, and another thread starts it again: the cycles check all other threads, and Celery's thread
checks the cycles.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

PAUSE = 1.0  # seconds between two starts: a thread that ends at once must not become a busy loop


class LastingThread:
    """Runs a function until it returns; if the function raises, the thread has ended too early.

    Args:
        run: the function; it returns when it is asked to end.
        name: of the thread.
        thread: a thread that runs already, in place of the first one.
    """

    def __init__(self, run: Callable[[], None], name: str, thread: threading.Thread | None = None) -> None:
        self._run = run
        self._name = name
        self._thread = thread
        self._returned = False
        self._error: BaseException | None = None
        self._logged = False
        self._started_at = float("-inf")
        if thread is not None:
            thread.name = name

    @property
    def is_started(self) -> bool:
        """Whether it was ever started."""
        return self._thread is not None

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def has_ended_early(self) -> bool:
        """Whether it was started and has ended without being asked to."""
        return self.is_started and not self.is_alive and not self._returned

    def start(self) -> None:
        """Start it."""
        self._returned, self._error, self._logged = False, None, False
        self._started_at = time.monotonic()
        self._thread = threading.Thread(target=self._main, name=self._name, daemon=True)
        self._thread.start()

    def restart_if_ended(self) -> bool:
        """If it has ended too early, log that and start it again; return whether it was started."""
        if not self.has_ended_early:
            return False
        if not self._logged:
            self._logged = True
            logger.error(
                "The thread %s ended without being asked to: %r. It is started again.",
                self._name,
                self._error,
                exc_info=self._error,
                extra={"action": "restart"},
            )
        if time.monotonic() < self._started_at + PAUSE:
            return False
        self.start()
        return True

    def join(self, within: float) -> bool:
        """Wait for its end; return whether it has ended in that time, or never ran."""
        if self._thread is not None:
            self._thread.join(within)
        return not self.is_alive

    def _main(self) -> None:
        try:
            self._run()
            self._returned = True
        except BaseException as error:  # noqa: BLE001  `restart_if_ended` logs it
            self._error = error
