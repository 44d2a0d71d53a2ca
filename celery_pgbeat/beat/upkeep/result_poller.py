"""For jobs on which no worker reports: pings the workers, and reads final states from the result backend.

Each has a thread of its own, so a broker or a backend that hangs does not delay the beat. The invariant: a cycle of the
beat waits at most `LONGEST_WAIT`, and never so long that the heartbeat is late. What has not arrived by then is not
used.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any

from celery import states
from celery.backends.base import DisabledBackend

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.timed_call import TimedCall

logger = logging.getLogger(__name__)

LONGEST_WAIT = 2.0  # seconds that a cycle waits for the result backend
PING_EVERY = 10.0  # seconds between two pings of the workers, while none of them announces the tracker
PING_TIMEOUT = 1.0  # seconds that workers have to answer
CONNECT_TIMEOUT = 3.0
ANSWERED = 2  # pings in a row: a starting worker answers before it announces its tracker
FINAL = {states.SUCCESS: "succeeded", states.FAILURE: "failed", states.REVOKED: "revoked"}

FinalStates = list[tuple[uuid.UUID, str]]


class ResultPoller:
    """Finds out what no worker reports about jobs."""

    def __init__(self, app: Any, wait: float = LONGEST_WAIT) -> None:
        self._app = app
        self._wait = min(wait, LONGEST_WAIT)
        self._workers = TimedCall("pgbeat-ping")
        self._backend = TimedCall("pgbeat-results")
        self._ping_at = boottime() + PING_EVERY  # workers that start together with the beat need time
        self._answered = 0
        self._warned = False

    def full_acts_as(self, workers_track: bool) -> str:
        """Return what `tracking = full` means: `full`, unless workers answer and none of them reports."""
        if workers_track:
            self._answered = 0
            return "full"
        if boottime() >= self._ping_at and self._app.conf.worker_enable_remote_control:
            self._ping_at = boottime() + PING_EVERY
            self._workers.call(self._ping, within=0.0)
        if self._answered < ANSWERED:
            return "full"
        acts_as = "send" if isinstance(self._app.backend, DisabledBackend) else "result"
        if not self._warned:
            self._warned = True
            logger.warning(
                "Workers answer, but none of them reports on jobs: tracking = full acts as %s. Add "
                "'celery_pgbeat.worker' to `imports` (PgBeat(app) does it) and restart the workers.",
                acts_as,
                extra={"action": "track"},
            )
        return acts_as

    def final_states(self, jobs: Sequence[uuid.UUID]) -> FinalStates:
        """Ask the result backend about jobs; return those that have ended, with their final states."""
        found: FinalStates = []
        if jobs and not isinstance(self._app.backend, DisabledBackend):
            self._backend.call(lambda: self._ask_backend(jobs, found), self._wait)
        return list(found)  # a copy: the thread may still add to it

    def _ask_backend(self, jobs: Sequence[uuid.UUID], found: FinalStates) -> None:
        try:
            for job in jobs:
                state = FINAL.get(self._app.backend.get_state(str(job)))
                if state is not None:
                    found.append((job, state))
        except Exception as error:  # noqa: BLE001  each backend has errors of its own; busy_until frees the jobs
            logger.warning("The result backend does not answer: %s", error, extra={"action": "track"})

    def _ping(self) -> None:
        try:
            with self._app.connection_for_write(connect_timeout=CONNECT_TIMEOUT) as connection:
                answers = self._app.control.ping(timeout=PING_TIMEOUT, connection=connection)
        except Exception:
            logger.debug("The workers could not be asked", exc_info=True)
            answers = []
        self._answered = self._answered + 1 if answers else 0
