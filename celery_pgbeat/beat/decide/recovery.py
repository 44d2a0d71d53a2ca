"""Takes over pending jobs that no beat is sending, and sends them under the same ids.

They were given back, made by trigger(), or left by a beat that died between its submit and its confirm. A beat in
shadow sends none of them: it records them as skipped, so that they are not sent later either.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.decide.planner import problem_of
from celery_pgbeat.beat.send.closed_queues import ClosedQueues
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.outgoing_jobs import job_of_recovered
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.planning import Rules, windows_of
from celery_pgbeat.postgres.beat_queries import BeatQueries, Recovered
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class Recovery:
    """Recovers jobs for one beat."""

    _queries: BeatQueries
    _delivery: Delivery
    _closed: ClosedQueues
    _clock: DatabaseClock
    _settings: Settings
    _rules: Rules
    _observer: Observer

    def recover(self, batch: int, lazy_names: Sequence[str]) -> bool:
        """Take over and send up to `batch` jobs; return whether there were any."""
        if not self._delivery.wait_for_place():
            return False
        lease_ends = boottime() + self._settings.lease.total_seconds()
        began = time.time_ns()
        recovered = self._queries.recover(batch, self._settings.on_time, lazy_names)
        self._observer.recovered(recovered, began)
        not_now = set() if self._settings.shadow else self._postpone(recovered)
        jobs: list[OutgoingJob] = []
        sends: list[int] = []
        forbidden: list[uuid.UUID] = []
        kept: list[uuid.UUID] = []
        for job in recovered:
            if job.id in not_now:
                continue
            if job.reason is not None:
                logger.info(
                    "Skipped %r for %s: %s",
                    job.periodic_task,
                    job.scheduled_for.isoformat(),
                    job.reason,
                    extra={"action": "skip"},
                )
            elif self._settings.shadow:
                kept.append(job.id)
            elif self._is_forbidden(job):
                forbidden.append(job.id)
            else:
                jobs.append(job_of_recovered(job))
                sends.append(job.sends)
        if forbidden:
            self._observer.skipped(forbidden, "not_allowed", self._queries.skip(forbidden, "not_allowed"))
        if kept:
            self._observer.skipped(kept, "shadow", self._queries.skip(kept, "shadow"))
            logger.info("Skipped %d jobs that waited, or were triggered: shadow", len(kept), extra={"action": "skip"})
        if jobs:
            if not self._closed:  # otherwise most are probes of closed queues
                _log_taken(sends)
            self._delivery.deliver(jobs, lease_ends)
        return bool(recovered)

    def _is_forbidden(self, job: Recovered) -> bool:
        try:
            options = json.loads(job.message or "{}")["options"]
        except (ValueError, LookupError, TypeError, RecursionError):
            options = None  # the delivery cannot read it either, and refuses the job with the reason
        return self._settings.refusal(job.task, job.queue, options if isinstance(options, dict) else {}) is not None

    def _postpone(self, recovered: Sequence[Recovered]) -> set[uuid.UUID]:
        """Postpone jobs that would start inside a blackout window; return these, and those with invalid windows."""
        postponed: list[tuple[uuid.UUID, datetime]] = []
        bad: list[tuple[uuid.UUID, str]] = []
        now = self._clock.database_time
        for job in recovered:
            if job.reason is not None or not job.blackout:
                continue
            try:
                windows = windows_of(job.blackout, job.windows, job.timezone or self._rules.timezone)
                free = now if windows is None else windows.defer(now)
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and its job has the reason
                bad.append((job.id, problem_of(error)))
                continue
            if free is None:
                bad.append((job.id, "the blackout windows never leave a free moment from here on"))
            elif free > now:
                postponed.append((job.id, free))
                logger.info(
                    "Postponed %r for %s to %s, out of a blackout window",
                    job.periodic_task,
                    job.scheduled_for.isoformat(),
                    free.isoformat(),
                    extra={"action": "postpone"},
                )
        postponed_ids, refused = [job for job, _ in postponed], [job for job, _ in bad]
        if postponed:
            self._queries.postpone_jobs(postponed)
            self._observer.settled(postponed_ids)
        if bad:
            self._observer.refused(refused, len(self._queries.refuse(bad)))
        return {*postponed_ids, *refused}


def _log_taken(sends: Sequence[int]) -> None:
    """Log how many jobs are sent for the first time, and how many a beat had begun to send before."""
    first = sends.count(1)
    if first:
        logger.info("Took %d jobs that waited, or were triggered", first, extra={"action": "take"})
    if len(sends) > first:
        logger.info("Recovered %d unsent jobs", len(sends) - first, extra={"action": "recover"})
