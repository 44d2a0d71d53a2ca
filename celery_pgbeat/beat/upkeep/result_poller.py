"""Jobs on which no worker reports: what `tracking = full` comes to there, and what the result backend tells.

Both are asked in threads of their own: a broker or a backend that hangs holds up no beat. The invariant: nobody is
waited for longer than `PATIENCE`, or than the beat's signs of life allow; what is not known by then is not known.
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

PATIENCE = 2.0  # seconds that a turn waits for the result backend
PING_EVERY = 10.0  # seconds between two pings of the workers, while none of them has announced the tracker
PING_TIMEOUT = 1.0  # seconds that workers have to answer
CONNECT_TIMEOUT = 3.0
ANSWERED = 2  # pings in a row: a worker that is starting answers before it has announced its tracker
FINAL = {states.SUCCESS: "succeeded", states.FAILURE: "failed", states.REVOKED: "revoked"}

Told = list[tuple[uuid.UUID, str]]


class ResultPoller:
    """What this beat knows of jobs beyond what the workers report."""

    def __init__(self, app: Any, patience: float = PATIENCE) -> None:
        self._app = app
        self._patience = min(patience, PATIENCE)
        self._workers = TimedCall("pgbeat-ping")
        self._backend = TimedCall("pgbeat-results")
        self._ping_at = boottime() + PING_EVERY  # workers that start with the beat have their time
        self._answered = 0
        self._warned = False

    def full_acts_as(self, workers_track: bool) -> str:
        """Return what `tracking = full` comes to: `full`, unless workers answer and none of them reports."""
        if workers_track:
            self._answered = 0
            return "full"
        if boottime() >= self._ping_at and self._app.conf.worker_enable_remote_control:
            self._ping_at = boottime() + PING_EVERY
            self._workers.ask(self._ping, within=0.0)
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

    def told(self, jobs: Sequence[uuid.UUID]) -> Told:
        """Ask the result backend about jobs; return those that have ended, each with its final state."""
        told: Told = []
        if jobs and not isinstance(self._app.backend, DisabledBackend):
            self._backend.ask(lambda: self._ask_backend(jobs, told), self._patience)
        return list(told)

    def _ask_backend(self, jobs: Sequence[uuid.UUID], told: Told) -> None:
        try:
            for job in jobs:
                state = FINAL.get(self._app.backend.get_state(str(job)))
                if state is not None:
                    told.append((job, state))
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
