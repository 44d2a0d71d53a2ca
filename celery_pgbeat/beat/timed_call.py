"""A call that may hang, made in a thread of its own so that the cycle does not hang with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class TimedCall:
    """Makes one call at a time, each in a thread that ends with it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None

    def call(self, function: Callable[[], None], within: float) -> bool:
        """Call, and wait up to `within` seconds; return whether it ended. While a call runs, another is refused."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self._thread = threading.Thread(target=self._run, args=(function,), name=self._name, daemon=True)
        self._thread.start()
        self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self, function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException:  # a SystemExit would end the thread without a log line
            logger.exception("The thread %s failed; it starts again with its next call", self._name)
