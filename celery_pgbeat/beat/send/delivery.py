"""Sends submitted jobs and records what became of each: confirmed, refused, or given back.

The work is done in steps of one batch of the publisher. A step is confirmed before the next one is written, so a kill
or a stop can double one step at most; only making the next messages goes on meanwhile. If another transaction locks a
job's row at its confirm, the confirm is tried again in later turns until the lease is over. After that any beat would
send the job again.
"""

from __future__ import annotations

import logging
import math
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.log_throttle import LogThrottle
from celery_pgbeat.beat.send.messages import OutgoingJob, Refusal
from celery_pgbeat.beat.send.orders import Order, outgoing_job
from celery_pgbeat.beat.send.publisher import BATCH, Published, Publisher
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.postgres.beat_queries import BeatQueries

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Unconfirmed:
    """Jobs that are sent, and whose rows were locked at their confirm; each with the seconds until it may start."""

    sent: list[tuple[uuid.UUID, float]]
    lease_ends: float


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
        self._unconfirmed: deque[Unconfirmed] = deque()

    @property
    def is_unfinished(self) -> bool:
        """Whether something is sent and not confirmed."""
        return bool(self._unconfirmed)

    @property
    def is_failing(self) -> bool:
        """Whether the last batch failed, and none has succeeded since."""
        return False

    @property
    def is_full(self) -> bool:
        """Whether a batch waits, so that nothing may be marked."""
        return False

    def most_within(self, seconds: float) -> float:
        """Return how many messages are delivered in this time, at the pace of the last ones."""
        return seconds / self._seconds_each if self._seconds_each else math.inf

    def wait_for_place(self) -> bool:
        """Wait a moment until no batch waits; return whether another one may be submitted."""
        return not self._stopping()

    def check(self) -> None:
        """Raise the error of an earlier batch, if there was one."""

    def finish(self, within: float) -> bool:
        """Deliver what waits; return whether that was done in that time."""
        del within
        return True

    def deliver(self, orders: Sequence[Order], lease_ends: float) -> None:
        """Make the jobs, publish them while the lease lasts, and confirm."""
        try:
            self._deliver(self._made(orders), lease_ends)
        finally:
            self._wait_for_confirm()

    def _deliver(self, jobs: Sequence[OutgoingJob], lease_ends: float) -> None:
        began = boottime()
        for first in range(0, len(jobs), BATCH):
            step = jobs[first : first + BATCH]
            published = self._publisher.publish(step, lease_ends, partial(self._late_after_confirm, step))
            # Beside a confirm nothing else is recorded: that would need a further connection.
            if len(published.sent) == BATCH and first + BATCH < len(jobs):
                self._begin_confirm(published.sent, lease_ends)
            elif published.sent:
                self._confirm(published.sent, lease_ends)
            self._refuse(published.refused)
            self._record(published)
            done = len(published.sent) + len(published.without_message)
            self._seconds_each = (boottime() - began) / (first + max(1, done))
            if published.unsent:
                unsent = [*published.unsent, *(job.id for job in jobs[first + BATCH :])]
                # If the lease is over, this beat may have marked some of them anew: they are sent under that mark.
                self._queries.give_back(unsent, late=boottime() >= lease_ends)
                self._observer.settled(unsent)
                return

    def confirm_again(self) -> bool:
        """Confirm what was locked before; return whether all of it is confirmed now."""
        waiting = len(self._unconfirmed)
        for _ in range(waiting):
            one = self._unconfirmed.popleft()
            if boottime() < one.lease_ends:
                self._confirm(one.sent, one.lease_ends)
        return bool(waiting) and not self._unconfirmed

    def _made(self, orders: Sequence[Order]) -> list[OutgoingJob]:
        jobs: list[OutgoingJob] = []
        refused: list[Refusal] = []
        for order in orders:
            try:
                jobs.append(outgoing_job(order))
            except BaseException as error:  # noqa: BLE001  one bad row stops only itself
                refused.append(Refusal(order.id, order.periodic_task, error))
        self._refuse(refused)
        return jobs

    def _late_after_confirm(self, step: Sequence[OutgoingJob]) -> set[uuid.UUID]:
        """Wait until the step before is confirmed; skip the jobs of this step that are too late then, and return them.

        They are later than the catchup_window of their row allows.
        """
        self._wait_for_confirm()
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

    def _begin_confirm(self, sent: list[tuple[uuid.UUID, float]], lease_ends: float) -> None:
        """Confirm, at the latest when `_wait_for_confirm` is called."""
        self._confirm(sent, lease_ends)

    def _wait_for_confirm(self) -> None:
        """Wait until what `_begin_confirm` has begun is done, and raise its error."""

    def _confirm(self, sent: list[tuple[uuid.UUID, float]], lease_ends: float) -> None:
        locked: set[uuid.UUID] = set()
        with self._observer.confirming(sent, locked):
            locked |= self._queries.confirm(sent).locked
        if locked:
            self._unconfirmed.append(Unconfirmed([(job, delay) for job, delay in sent if job in locked], lease_ends))

    def _skip(self, jobs: Sequence[OutgoingJob], reason: str) -> None:
        ids = [job.id for job in jobs]
        self._observer.skipped(ids, reason, self._queries.skip(ids, reason))

    def _record(self, published: Published) -> None:
        """Record jobs that have no message: their task sent none, or ran in the beat."""
        if published.ended:
            self._queries.finish_eager(published.ended)
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
        lost = self._queries.refuse([(refusal.job, refusal.reason) for refusal in refusals])
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
