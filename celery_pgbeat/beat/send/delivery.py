"""Brings submitted jobs to the broker and writes down what became of each: confirmed, refused, or given back.

In a thread of its own: while it waits for the broker and for the confirm, the next batch is marked, decided and
submitted. Nothing is marked before the last batch has been begun: what is submitted and not sent is what a kill leaves
to the others for a lease, and a lease that runs while its batch waits is soon over. Batches go out in the order in
which they were submitted, each while its own lease holds.

The thread that makes the turns waits for a place only for a moment. A broker that hangs holds the batch under way for
many seconds, and the turns give the beat's signs of life: they go on without a place, and this thread rings when it
has one.

Done in small steps: what a kill or a stop can double is one step at most. What the broker took and somebody held when
it was to be confirmed is confirmed again in the next turns, until the lease is over: then any beat would send it again.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.log_throttle import LogThrottle
from celery_pgbeat.beat.send.messages import OutgoingJob, Refusal
from celery_pgbeat.beat.send.publisher import Published, Publisher
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.threads import LastingThread

logger = logging.getLogger(__name__)

STEP = 250  # messages between two confirms
MOMENT = 0.1  # seconds that a turn waits for a place: mostly the batch before it is begun by then

# A submitted job: its id, its periodic task, and what makes it; a row may hold what no message can.
Order = tuple[uuid.UUID, str, Callable[[], OutgoingJob]]


@dataclass(slots=True)
class Unconfirmed:
    """Jobs that are sent, with the seconds until each may start, and that somebody held when they were confirmed."""

    sent: list[tuple[uuid.UUID, float]]
    lease_ends: float


class Delivery:
    """Delivers for one beat."""

    def __init__(
        self,
        store: BeatQueries,
        publisher: Publisher,
        complaints: LogThrottle,
        stopping: Callable[[], bool],
        ring: Callable[[], None],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._log_throttle = complaints
        self._stopping = stopping
        self._ring = ring
        self._now = now  # by the database's clock
        self._batches: queue.SimpleQueue[tuple[Sequence[Order], float] | None] = queue.SimpleQueue()
        self._begun = threading.Event()  # whether every batch has been begun, so that another one may wait
        self._begun.set()
        self._refused = False  # whether a turn found no place, and is to be rung for when there is one
        self._thread = LastingThread(self._run, "pgbeat-delivery")
        self._error: BaseException | None = None
        self._failing = False  # whether the last batch was not delivered
        self._pace = 0.0  # seconds that a message of the last batch took
        self._unconfirmed: deque[Unconfirmed] = deque()

    @property
    def is_unfinished(self) -> bool:
        """Whether something is sent and not confirmed."""
        return bool(self._unconfirmed)

    @property
    def is_failing(self) -> bool:
        """Whether the last batch went wrong, and none has gone well since."""
        return self._failing

    def most_within(self, seconds: float) -> float:
        """Return how many messages are delivered in this time, at the pace of the last ones."""
        return seconds / self._pace if self._pace else math.inf

    @property
    def is_full(self) -> bool:
        """Whether a batch waits, so that nothing may be marked."""
        return not self._begun.is_set()

    def wait_for_place(self) -> bool:
        """Wait a moment until no batch waits; tell whether that is so, and not the end of the beat.

        Where it is not so, the beat is rung for when it is, and until then the next call does not wait.
        """
        if self._stopping():
            return False
        if self._begun.wait(0 if self._refused else MOMENT):
            self._refused = False
            return True
        self._refused = True
        return self._begun.is_set()  # in between, and it may not have rung

    def deliver(self, orders: Sequence[Order], lease_ends: float) -> None:
        """Have a batch delivered, when those before it are."""
        if not orders:
            return
        if not self._thread.is_started:
            self._thread.start()
        self._begun.clear()
        self._batches.put((orders, lease_ends))

    def check(self) -> None:
        """Raise what went wrong since the last look, if anything did; start the thread again if it has ended.

        A batch that was under way is as a killed beat leaves it: sent by any beat when its lease is over.
        """
        if self._thread.has_ended_early:
            if self._batches.empty():
                self._begun.set()
            self._thread.mend()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def finish(self, within: float) -> bool:
        """End the thread when it has delivered what there is; tell whether it has ended within so many seconds."""
        if self._thread.is_alive:
            self._batches.put(None)
        return self._thread.join(within)

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            if self._batches.empty():
                self._begun.set()
                if self._refused:
                    self._refused = False
                    self._ring()
            try:
                self._deliver(*batch)
                self._failing = False
            except BaseException as error:  # noqa: BLE001  raised by the next `check`, in the thread that makes the turns
                self._failing = True
                self._error = self._error or error
            del batch  # else an idle beat would keep its last thousand rows

    def _deliver(self, orders: Sequence[Order], lease_ends: float) -> None:
        """Make the messages, publish while the lease holds, and confirm."""
        jobs: list[OutgoingJob] = []
        unmade: list[Refusal] = []
        for job, periodic_task, make in orders:
            try:
                jobs.append(make())
            except BaseException as error:  # noqa: BLE001  one bad row stops only itself
                unmade.append(Refusal(job, periodic_task, error))
        self._refuse(unmade)
        began = boottime()
        for first in range(0, len(jobs), STEP):
            published = self._publisher.publish(self._in_time(jobs[first : first + STEP]), lease_ends)
            if published.sent:
                self._confirm(published.sent, lease_ends)
            self._refuse(published.refused)
            self._record(published)
            done = len(published.sent) + len(published.settled)
            self._pace = (boottime() - began) / (first + max(1, done))
            if published.unsent:
                rest = [job.id for job in jobs[first + STEP :]]
                # Late, this beat may have marked some of them anew: that mark's batch waits here, and will send them.
                self._store.give_back([*published.unsent, *rest], late=boottime() >= lease_ends)
                return

    def _in_time(self, jobs: list[OutgoingJob]) -> list[OutgoingJob]:
        """Record what is later now than its row's catchup_window allows; return the rest."""
        late = [job for job in jobs if job.send_by is not None and job.send_by < self._now()]
        if not late:
            return jobs
        self._store.skip([job.id for job in late], "too_late")
        for job in late:
            logger.info(
                "Skipped %r for %s: too_late to be sent",
                job.periodic_task,
                job.scheduled_for.isoformat(),
                extra={"action": "skip"},
            )
        dropped = {job.id for job in late}
        return [job for job in jobs if job.id not in dropped]

    def confirm_again(self) -> bool:
        """Confirm what somebody held; tell whether all of it is confirmed now."""
        waiting = len(self._unconfirmed)
        for _ in range(waiting):
            one = self._unconfirmed.popleft()
            if boottime() < one.lease_ends:
                self._confirm(one.sent, one.lease_ends)
        return bool(waiting) and not self._unconfirmed

    def _confirm(self, sent: list[tuple[uuid.UUID, float]], lease_ends: float) -> None:
        held = self._store.confirm(sent).held
        if held:
            self._unconfirmed.append(Unconfirmed([(job, delay) for job, delay in sent if job in held], lease_ends))

    def _record(self, published: Published) -> None:
        """Record jobs of which there is no message: their task sent none, or ran in the beat."""
        if published.ended:
            self._store.finish_eager(published.ended)
        if not published.not_sent:
            return
        self._store.skip([job.id for job in published.not_sent], "not_sent")
        for job in published.not_sent:
            if self._log_throttle.is_due(job.periodic_task):
                logger.warning(
                    "Skipped %r for %s: the apply_async of its task %r has sent no message",
                    job.periodic_task,
                    job.scheduled_for.isoformat(),
                    job.task,
                    extra={"action": "skip"},
                )

    def _refuse(self, refusals: Sequence[Refusal]) -> None:
        """Record what cannot be sent; after the third time it is lost."""
        if not refusals:
            return
        lost = self._store.refuse([(refusal.job, refusal.reason) for refusal in refusals])
        for refusal in refusals:
            if self._log_throttle.is_due(refusal.periodic_task):
                logger.error(
                    "Cannot send job %s of %r, which is %s: %s",
                    refusal.job,
                    refusal.periodic_task,
                    "lost now" if refusal.job in lost else "tried again",
                    refusal.reason,
                    extra={"action": "refuse"},
                )
            if not refusal.sensitive:
                logger.debug("The error in full:", exc_info=refusal.error, extra={"action": "refuse"})
