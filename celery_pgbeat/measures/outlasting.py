"""Calls a step again and again that must not end the beat, whatever it raises."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from celery_pgbeat.errors import DatabaseUnavailable

REMIND_EVERY = 60.0  # seconds between two log lines about a step that fails


class Outlasting:
    """Logs the errors of one step of a thread, at most one line a minute, and raises none.

    Args:
        logger: of the thread's module.
        says: what cannot be done, as the log line says it: `Cannot look for what is overdue`.
        action: of the log line.
    """

    def __init__(self, logger: logging.Logger, says: str, action: str) -> None:
        self._logger = logger
        self._says = says
        self._extra = {"action": action}
        self._remind_at = 0.0

    def call(self, step: Callable[[], None]) -> None:
        """Call the step."""
        try:
            step()
        except DatabaseUnavailable as error:
            # The cycles log the outage; this line explains why the step has had no effect.
            self._logger.debug("%s: %s", self._says, error, extra=self._extra)
        except BaseException as error:  # noqa: BLE001  an error here must not stop the beat
            if time.monotonic() >= self._remind_at:
                self._remind_at = time.monotonic() + REMIND_EVERY
                self._logger.warning("%s: %s", self._says, error, extra=self._extra)
