"""Sends submitted jobs and records what became of each: confirmed, refused, or given back.

The work is done in steps of one batch of the publisher. No more than one full step is written and waits for its
confirm, so a kill or a stop can double that at most. If another transaction locks a job's row at its confirm, the
confirm is tried again in later cycles until the lease is over. After that any beat would send the job again.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.log_throttle import LogThrottle
from celery_pgbeat.beat.send.confirmer import Sent
from celery_pgbeat.beat.send.messages import OutgoingJob, Refusal
from celery_pgbeat.beat.send.outgoing_jobs import read_texts
from celery_pgbeat.beat.send.publisher import BATCH, Published, Publisher
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.postgres.beat_queries import BeatQueries

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class Delivery:
    """Delivers each batch at once, in the thread that asks for it."""

    _queries: BeatQueries
    _publisher: Publisher
    _throttle: LogThrottle
    _now: Callable[[], datetime]  # by the database's clock
    _stopping: Callable[[], bool]
    _observer: Observer

    def __post_init__(self) -> None:
        self._seconds_each = 0.0  # that a message of the last batch took
        self._locked: deque[Sent] = deque()  # at whose confirm the rows were locked

    @property
    def has_unconfirmed(self) -> bool:
        """Whether a confirm is to be tried again."""
        return bool(self._locked)

    @property
    def is_failing(self) -> bool:
        """Whether the last batch failed, and none has succeeded since."""
        return False

    def most_within(self, seconds: float) -> float:
        """Return how many messages are delivered in this time, at the pace of the last ones."""
        return seconds / self._seconds_each if self._seconds_each else math.inf

    def wait_for_place(self) -> bool:
        """Wait a moment until no batch waits; return whether another one may be submitted."""
        return not self._stopping()

    def check(self) -> None:
        """Raise the error of an earlier batch, if there was one."""

    def drain(self, within: float) -> bool:
        """Deliver what waits; return whether that was done in that time."""
        del within
        return True

    def deliver(self, jobs: Sequence[OutgoingJob], lease_ends: float) -> None:
        """Read the texts of the jobs, publish them while the lease lasts, and confirm."""
        jobs = self._readable(jobs)
        began = boottime()
        for first in range(0, len(jobs), BATCH):
            step = jobs[first : first + BATCH]
            published = self._publisher.publish(
                step, lease_ends, partial(self._late_when_there_is_room, step, lease_ends)
            )
            if published.sent:
                self._begin_confirm(Sent(published.sent, lease_ends))
            self._refuse(published.refused)
            self._record(published)
            if published.delayed:
                self._queries_alone().delay_jobs(published.delayed)
                self._observer.settled([delayed.job for delayed in published.delayed])
            if published.opened:
                self._queries_alone().end_delays()
            done = len(published.sent) + len(published.settled)
            self._seconds_each = (boottime() - began) / (first + max(1, done))
            if published.unsent:
                unsent = [*published.unsent, *(job.id for job in jobs[first + BATCH :])]
                # If the lease is over, this beat may have marked some of them anew: they are sent under that mark.
                self._queries_alone().give_back(unsent, late=boottime() >= lease_ends)
                self._observer.settled(unsent)
                return

    def confirm_again(self) -> bool:
        """Confirm what was locked before; return whether all of it is confirmed now."""
        waiting = len(self._locked)
        for _ in range(waiting):
            one = self._locked.popleft()
            if boottime() < one.lease_ends:
                self._confirm([one])
        return bool(waiting) and not self._locked

    def _readable(self, jobs: Sequence[OutgoingJob]) -> list[OutgoingJob]:
        readable: list[OutgoingJob] = []
        refused: list[Refusal] = []
        for job in jobs:
            try:
                read_texts(job)
            except BaseException as error:  # noqa: BLE001  one bad row stops only itself
                refused.append(Refusal(job.id, job.periodic_task, error))
            else:
                readable.append(job)
        self._refuse(refused)
        return readable

    def _late_when_there_is_room(self, step: Sequence[OutgoingJob], lease_ends: float) -> set[uuid.UUID]:
        """Wait until the step may be written; skip its jobs that are too late then, and return them.

        They are later than the catchup_window of their row allows.
        """
        self._wait_for_room(len(step), lease_ends)
        late = [job for job in step if job.send_by is not None and job.send_by < self._now()]
        if not late:
            return set()
        self._skip(late, "too_late")
        for job in late:
            logger.info(
                "Skipped %r for %s: too_late to be sent",
                job.periodic_task,
                job.scheduled_for.isoformat(),
                extra={"action": "skip"},
            )
        return {job.id for job in late}

    def _begin_confirm(self, sent: Sent) -> None:
        """Confirm what was sent, now or soon."""
        self._confirm([sent])

    def _wait_for_room(self, count: int, lease_ends: float) -> None:
        """Wait until this many more jobs of the batch may be sent."""

    def _queries_alone(self) -> BeatQueries:
        """Return the statements when no confirm is under way: beside one, another would need a further connection."""
        return self._queries

    def _confirm(self, parts: Sequence[Sent]) -> None:
        locked_of_part: list[set[uuid.UUID]] = [set() for _ in parts]
        with ExitStack() as measured:
            for part, locked in zip(parts, locked_of_part, strict=True):
                measured.enter_context(self._observer.confirming(part.jobs, locked))
            found = self._queries.confirm([job for part in parts for job in part.jobs]).locked
            for part, locked in zip(parts, locked_of_part, strict=True) if found else ():
                locked |= {job for job, _ in part.jobs if job in found}
        for part, locked in zip(parts, locked_of_part, strict=True):
            if locked:
                self._locked.append(Sent([(job, delay) for job, delay in part.jobs if job in locked], part.lease_ends))

    def _skip(self, jobs: Sequence[OutgoingJob], reason: str) -> None:
        ids = [job.id for job in jobs]
        self._observer.skipped(ids, reason, self._queries_alone().skip(ids, reason))

    def _record(self, published: Published) -> None:
        """Record jobs that have no message: their task sent none, or ran in the beat."""
        if published.ended:
            self._queries_alone().finish_eager(published.ended)
            self._observer.settled([end.job for end in published.ended])
        if not published.not_sent:
            return
        self._skip(published.not_sent, "not_sent")
        for job in published.not_sent:
            if self._throttle.is_due(job.periodic_task):
                logger.warning(
                    "Skipped %r for %s: the apply_async of its task %r has sent no message",
                    job.periodic_task,
                    job.scheduled_for.isoformat(),
                    job.task,
                    extra={"action": "skip"},
                )

    def _refuse(self, refusals: Sequence[Refusal]) -> None:
        """Record jobs that cannot be sent; the third refusal of a job makes it lost."""
        if not refusals:
            return
        lost = self._queries_alone().refuse([(refusal.job, refusal.reason) for refusal in refusals])
        self._observer.refused([refusal.job for refusal in refusals], len(lost))
        for refusal in refusals:
            if self._throttle.is_due(refusal.periodic_task):
                logger.error(
                    "Job %s of %r was not sent: %s; %s",
                    refusal.job,
                    refusal.periodic_task,
                    refusal.reason,
                    "given up after 3 attempts, as lost" if refusal.job in lost else "it is tried again",
                    extra={"action": "refuse"},
                )
            if not refusal.sensitive:
                logger.debug("The error in full:", exc_info=refusal.error, extra={"action": "refuse"})
