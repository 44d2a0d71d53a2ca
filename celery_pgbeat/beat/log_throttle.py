"""Limits the log lines about one row: what is wrong with it may be wrong each second."""

from __future__ import annotations

import threading

from celery_pgbeat.beat.database_clock import boottime

EVERY = 60.0  # seconds between two lines about one row
MOST = 10_000  # rows that are remembered


class LogThrottle:
    """Remembers the rows that were logged in the last minute, for all threads of a beat.

    Example:
        >>> throttle = LogThrottle()
        >>> [throttle.is_due("report"), throttle.is_due("report"), throttle.is_due("mail")]
        [True, False, True]
    """

    def __init__(self) -> None:
        self._made_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_due(self, name: str) -> bool:
        """Return whether a line about a row may be logged; if so, it counts as logged now."""
        now = boottime()
        with self._lock:
            if now - self._made_at.get(name, float("-inf")) < EVERY:
                return False
            self._made_at.pop(name, None)  # so that the oldest stays in front
            self._made_at[name] = now
            if len(self._made_at) > MOST:
                del self._made_at[next(iter(self._made_at))]
            return True
