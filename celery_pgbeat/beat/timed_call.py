"""A question to a server that may not answer, asked in a thread of its own so that no turn hangs with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class TimedCall:
    """Asks one question at a time, each in a thread that ends with it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None

    def ask(self, question: Callable[[], None], within: float) -> bool:
        """Ask, and wait so many seconds; tell whether it was answered. An open question is not asked over."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self._thread = threading.Thread(target=self._ask, args=(question,), name=self._name, daemon=True)
        self._thread.start()
        self._thread.join(within)
        return not self._thread.is_alive()

    def _ask(self, question: Callable[[], None]) -> None:
        try:
            question()
        except BaseException:  # a SystemExit would end the thread without a word
            logger.exception("The thread %s failed; it starts again with its next question", self._name)
