"""How things stand in the whole cluster, read when somebody asks, and not more often than it is worth."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import dataclass
from datetime import timedelta

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.database import Database

logger = logging.getLogger(__name__)

KEPT = 5.0  # seconds that a reading is good for
SHARE = 20  # reading may take one part in so many of the time: what is slow to read is read less often
MOST = 10_000  # rows that are due or overdue: that many are counted, and no more


@dataclass(frozen=True, slots=True)
class Reading:
    """How things stood: rows that are due or overdue (at most 10,000 of each), jobs by state, beats, alerts."""

    due: int
    overdue: int
    active: dict[str, int]
    beats: int
    alerts: int


class Gauges:
    """Reads for one beat; whoever asks while another one is asking waits for that answer."""

    def __init__(self, database: Database, dead_after: timedelta) -> None:
        self._database = database
        self._dead_after = dead_after
        self._lock = threading.Lock()
        self._known: Reading | None = None
        self._good_until = 0.0

    def read(self) -> Reading | None:
        """Return how things stand, None where the database does not tell."""
        with self._lock:
            if time.monotonic() >= self._good_until:
                began = time.monotonic()
                self._known = self._read()
                self._good_until = time.monotonic() + max(KEPT, SHARE * (time.monotonic() - began))
            return self._known

    def _read(self) -> Reading | None:
        try:
            (row,) = self._database.run("read_gauges", most=MOST, dead_after=self._dead_after.total_seconds())
        except DatabaseUnavailable:
            return None
        except Exception as error:  # noqa: BLE001  no schema yet, or no right to read it: there is nothing to tell
            logger.debug("The gauges cannot be read: %s", error, extra={"action": "measure"})
            return None
        return Reading(row.due, row.overdue, json.loads(row.active), row.beats, row.alerts)
