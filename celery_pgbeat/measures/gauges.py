"""The state of the whole cluster, read from the database when a scrape asks for it, but not too often."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import dataclass

from celery_pgbeat.errors import DatabaseUnavailable
from celery_pgbeat.postgres.database import Database

logger = logging.getLogger(__name__)

KEPT = 5.0  # seconds that a reading is good for
SHARE = 20  # reading takes at most a twentieth of the time: slow readings are made less often
MOST = 10_000  # due or overdue rows that are counted at most


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers of due and overdue rows (at most 10,000 each), of jobs by state, of beats, alerts and refusals."""

    due: int
    overdue: int
    active: dict[str, int]
    beats: int
    alerts: int
    refused_declarations: int


class Gauges:
    """Reads for one beat; while one scrape reads, others wait for its result."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: Reading | None = None
        self._good_until = 0.0

    def read(self) -> Reading | None:
        """Return the state of the cluster, None if it cannot be read."""
        with self._lock:
            if time.monotonic() >= self._good_until:
                began = time.monotonic()
                self._known = self._read()
                self._good_until = time.monotonic() + max(KEPT, SHARE * (time.monotonic() - began))
            return self._known

    def _read(self) -> Reading | None:
        try:
            (row,) = self._database.run("read_gauges", most=MOST)
        except DatabaseUnavailable:
            return None
        except Exception as error:  # noqa: BLE001  no schema yet, or no right to read it
            logger.debug("The gauges cannot be read: %s", error, extra={"action": "measure"})
            return None
        return Reading(row.due, row.overdue, json.loads(row.active), row.beats, row.alerts, row.refused_declarations)
