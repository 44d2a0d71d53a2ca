"""What is wrong with a row may be wrong each second; the log hears of it once a minute."""

from __future__ import annotations

import threading

from celery_pgbeat.beat.database_clock import boottime

EVERY = 60.0  # seconds between two complaints about one row
MOST = 10_000  # rows that are remembered


class LogThrottle:
    """Remembers which rows were complained of lately, for all threads of a beat.

    Example:
        >>> complaints = LogThrottle()
        >>> [complaints.is_due("report"), complaints.is_due("report"), complaints.is_due("mail")]
        [True, False, True]
    """

    def __init__(self) -> None:
        self._made_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_due(self, name: str) -> bool:
        """Tell whether nothing was said about a row for a while, and take it as said now."""
        now = boottime()
        with self._lock:
            if now - self._made_at.get(name, float("-inf")) < EVERY:
                return False
            self._made_at.pop(name, None)  # so that the oldest stays in front
            self._made_at[name] = now
            if len(self._made_at) > MOST:
                del self._made_at[next(iter(self._made_at))]
            return True
