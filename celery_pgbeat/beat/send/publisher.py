"""Hands messages to the broker, and reports which of them may or may not have arrived.

An error of the connection means "unknown", never "not sent": the job is given back and sent again under the same id,
and the worker's guard drops the second copy.

There are three ways to send a message. Each message takes the first that is exact for it:

    rendered    made from a template that is proven to equal Celery's own message; many are written at once
    together    made by Celery's own `apply_entry`; kombu's batch, where it has one, writes many at once
    one by one  made by Celery's own `apply_entry`; the broker answers for each

If writing many at once fails, it is not known which message caused it. From then on these messages go one by one, until
each has been sent or has proved to be the cause.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.send.broker import Broker, Sender
from celery_pgbeat.beat.send.closed_queues import ClosedQueues, Delayed
from celery_pgbeat.beat.send.fanout import FanoutWarning
from celery_pgbeat.beat.send.messages import JobEntry, OutgoingJob, Refusal, Refused
from celery_pgbeat.beat.send.rendering.eligibility import split_by_batchable
from celery_pgbeat.beat.send.rendering.renderer import MessageBatch, Renderer
from celery_pgbeat.beat.send.returned import Ended, ended, is_sent, watched
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.texts.redaction import error_text
from celery_pgbeat.texts.safe_text import one_line

if TYPE_CHECKING:
    from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules

logger = logging.getLogger(__name__)
celery_logger = logging.getLogger("celery.beat")

BATCH = 250  # messages written at once, and the most that wait for their confirm: what a kill can double
MADE_WITHIN = 0.5  # seconds before they are written; older ones are made again, as `expires` counts from their making
LOGGED_SINGLY = 10  # messages written at once that still get one log line each
SUSPECTS = 10_000  # that are remembered
COMMANDS = 100 * BATCH  # in a batch of kombu's; if there were more, kombu would write some before the batch ends


@dataclass(slots=True)
class Published:
    """What the publisher has done with each job of a batch.

    Attributes:
        sent: the broker took the message; with the seconds until each may start.
        refused: there can be no such message, or the broker refuses it.
        unsent: not sent, or not known whether it was; the delivery gives it back, and a beat sends it.
        delayed: the broker takes no message for its queue now; the delivery gives it back, and a beat sends it later.
        opened: whether the broker took a message for a queue that was closed.
        not_sent: the task's own `apply_async` sent nothing; the delivery records it as skipped.
        ended: the task ran in the beat itself (`task_always_eager`).
    """

    sent: list[tuple[uuid.UUID, float]] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    unsent: list[uuid.UUID] = field(default_factory=list)
    delayed: list[Delayed] = field(default_factory=list)
    opened: bool = False
    not_sent: list[OutgoingJob] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)

    def refuse(self, job: OutgoingJob, error: BaseException, what: Refused = Refused.NO_MESSAGE) -> None:
        """Note that this job cannot be sent, and what failed."""
        self.refused.append(Refusal(job.id, job.periodic_task, error, job.sensitive, what))

    @property
    def settled(self) -> set[uuid.UUID]:
        """The jobs that are neither sent nor to be sent again at once."""
        return {
            *(delayed.job for delayed in self.delayed),
            *(refusal.job for refusal in self.refused),
            *(job.id for job in self.not_sent),
            *(end.job for end in self.ended),
        }


class Abandoned(Exception):
    """The lease of a batch ended before its messages were made, so none of them is written."""


@dataclass(eq=False, repr=False)
class Publisher:
    """Publishes on a connection of the beat's own."""

    _sender: Sender
    _clock: DatabaseClock
    _code: CodeSchedules
    _broker: Broker
    _closed: ClosedQueues
    _renderer: Renderer
    _stopping: Callable[[], bool]
    _observer: Observer

    def __post_init__(self) -> None:
        self._together = True  # until Redis refuses a part of a batch
        self._suspects: dict[uuid.UUID, int] = {}  # 1: was in a batch that failed; 2: its own sending has failed
        self._sent_since = False  # whether a message was sent since the connection was lost
        self._fanout_warning = FanoutWarning(self._sender.app)

    def publish(
        self,
        jobs: Sequence[OutgoingJob],
        lease_ends: float,
        dropped: Callable[[], Collection[uuid.UUID]] = lambda: (),
    ) -> Published:
        """Publish up to `BATCH` jobs while the lease lasts and no stop is asked for; keep none of them for later.

        `dropped` is called once, when messages are rendered and before any is written: it may wait, and returns the
        jobs that must not be sent after that.
        """
        published = Published()
        if self._broker.producer is None or not jobs:
            published.unsent.extend(job.id for job in jobs)
            return published
        began = boottime()
        self._fanout_warning.check(jobs)
        with self._observer.publishing(jobs, self._broker.driver, published):
            jobs = self._without_delayed(jobs, published)
            made_at = boottime()
            queue = deque(self._sorted(jobs))
            without = dropped()
            if without or boottime() > made_at + MADE_WITHIN:
                queue = deque(self._sorted([job for job in jobs if job.id not in without]))
            # Read before each write: a stop may fall between any two.
            while queue and self._broker.producer is not None and boottime() < lease_ends and not self._stopping():
                item = queue.popleft()
                if isinstance(item, MessageBatch):
                    self._publish_rendered(item, published)
                elif len(item) > 1:
                    self._publish_together(item, lease_ends, published)
                else:
                    self._publish_one(item[0], published)
            for item in queue:
                published.unsent.extend(job.id for job in (item.jobs if isinstance(item, MessageBatch) else item))
            if published.sent:
                self._broker.took()
                sent = {job for job, _ in published.sent} if self._closed else ()
                published.opened = self._closed.took([job for job in jobs if job.id in sent], began)
        return published

    def _without_delayed(self, jobs: Sequence[OutgoingJob], published: Published) -> Sequence[OutgoingJob]:
        """Delay the jobs of closed queues; return the others, of which one may be the probe of its queue."""
        if not self._closed:
            return jobs
        tried: list[OutgoingJob] = []
        for job in jobs:
            delayed = self._closed.wait_of(job)
            if delayed is None:
                tried.append(job)
            else:
                published.delayed.append(delayed)
        return tried

    def _close(self, job: OutgoingJob, error: BaseException | None, published: Published) -> None:
        said = "rejected" if error is None else self._broker.said(error)
        may_be_its_own = error is None or self._broker.may_be_of_one(error)
        published.delayed.append(self._closed.close(job, said, may_be_its_own))
        self._suspects.pop(job.id, None)

    def _sorted(self, jobs: Sequence[OutgoingJob]) -> list[MessageBatch | list[OutgoingJob]]:
        """Return what to write at once, in this order. Suspects go alone and last, the worst at the end."""
        suspects: list[OutgoingJob] = []
        if self._suspects:
            suspects = sorted((job for job in jobs if job.id in self._suspects), key=lambda job: self._suspects[job.id])
            jobs = [job for job in jobs if job.id not in self._suspects]
        batches, rest = self._rendered(jobs)
        together: list[OutgoingJob] = []
        alone = rest
        if len(rest) > 1 and self._together and getattr(self._broker.producer, "supports_batch_publish", False):
            together, alone = split_by_batchable(self._sender, rest)
        return [*batches, *filter(None, [together]), *([job] for job in (*alone, *suspects))]

    def _rendered(self, jobs: Sequence[OutgoingJob]) -> tuple[list[MessageBatch], Sequence[OutgoingJob]]:
        """Render what can be rendered. If the broker refuses a queue, Celery's own way finds out whose."""
        if self._broker.producer is None:
            return [], jobs
        try:
            return self._renderer.render(jobs, self._clock.database_time)
        except BaseException as error:
            # Under gevent the SystemExit of a signal handler may be raised here.
            foreseen = self._stopping() or self._broker.is_connection_error(error) or self._broker.is_refusal(error)
            extra = {"action": "publish"}
            logger.warning("Nothing can be rendered now: %s", error, exc_info=not foreseen, extra=extra)
            self._reconnect_after(error)
            return [], jobs

    def _publish_rendered(self, batch: MessageBatch, published: Published) -> None:
        _log_sending(batch.jobs)
        closed: Exception | None = None  # a broker that answers for each message gives no reason
        try:
            batch.send()
        except Exception as error:  # noqa: BLE001  after any error, `taken` has what is known
            if self._broker.driver == "redis" and self._broker.is_closed_by(error):  # a batch has one key there
                closed = error
                batch.taken = [False] * len(batch.jobs)
            else:
                self._disconnect_after(error, batch.jobs)
        for job, delay, taken in zip(batch.jobs, batch.delays, batch.taken, strict=True):
            if taken:
                published.sent.append((job.id, delay))
                self._sent_since = True
            elif taken is None:
                published.unsent.append(job.id)
                self._suspect(job, 1)
            else:
                self._close(job, closed, published)

    def _publish_together(self, jobs: Sequence[OutgoingJob], lease_ends: float, published: Published) -> None:
        """Let Celery make the messages and kombu write them at once."""
        writing = False
        sent: list[JobEntry] = []
        try:
            with self._broker.producer.batch(max_size=COMMANDS):
                made = self._made(jobs, published)
                if boottime() >= lease_ends:
                    raise Abandoned
                writing = True
            sent = made
        except Abandoned:
            logger.warning("The lease ended before %d messages were made", len(jobs), extra={"action": "publish"})
        except Exception as error:  # noqa: BLE001  each transport has errors of its own
            cause = error.__cause__ or error
            # Redis may take some messages of a batch and refuse others, and kombu does not report which.
            refused = self._broker.is_refusal(cause) and not self._broker.is_closed_by(cause)
            self._together = not (writing and refused)
            for job in jobs:
                self._suspect(job, 1)
            self._disconnect_after(cause, jobs)
        published.sent.extend((entry.job.id, entry.delay) for entry in sent)
        self._sent_since = self._sent_since or bool(sent)
        known = {entry.job.id for entry in sent} | published.settled
        published.unsent.extend(job.id for job in jobs if job.id not in known)

    def _made(self, jobs: Sequence[OutgoingJob], published: Published) -> list[JobEntry]:
        """Make messages, which wait in the producer; raises if the connection is lost meanwhile."""
        made: list[JobEntry] = []
        for job in jobs:
            if self._stopping():
                break
            entry = self._applied(job, published)
            if entry is None:
                continue
            if entry.error is None:
                made.append(entry)
            elif self._broker.is_closed_by(entry.error):
                self._close(job, entry.error, published)
            elif self._broker.is_connection_error(entry.error):
                self._suspect(job, 2)
                raise entry.error
            else:
                published.refuse(job, entry.error, self._what_failed(entry.error))
        return made

    def _publish_one(self, job: OutgoingJob, published: Published) -> None:
        entry = self._applied(job, published)
        if entry is None:
            return
        if entry.error is None:
            published.sent.append((job.id, entry.delay))
            self._suspects.pop(job.id, None)
            self._sent_since = True
        elif self._broker.is_closed_by(entry.error):
            self._close(job, entry.error, published)
            self._reconnect_after(entry.error)
        elif self._broker.is_connection_error(entry.error) and not self._is_culprit(job):
            self._suspect(job, 2)
            self._sent_since = False
            self._broker.disconnect(_loggable(entry.error, [job]))
            published.unsent.append(job.id)
        else:
            published.refuse(job, entry.error, self._what_failed(entry.error))
            self._suspects.pop(job.id, None)
            self._reconnect_after(entry.error)

    def _applied(self, job: OutgoingJob, published: Published) -> JobEntry | None:
        """Send a job through Celery's scheduler, or through what wraps it; an error is noted on the returned entry.

        Returns None if there is no message; `published` then has the reason. A task with its own `apply_async` may have
        sent nothing, or have run in the beat: `watched`, `ended` and `is_sent` (`returned.py`) find that out.
        """
        try:
            now, lazy = self._clock.database_time, self._code.lazy_entry(job.periodic_task)
            entry = JobEntry(job, self._sender.app, now, lazy)
        except BaseException as error:  # noqa: BLE001  a row may contain data that cannot become a message
            published.refuse(job, error)
            return None
        try:
            with self._observer.sending(job.id), watched(entry):
                self._sender.apply_entry(entry, producer=self._broker.producer)
        except BaseException as error:  # noqa: BLE001  what wraps the scheduler may raise, and not note it
            entry.error = error
        end = ended(entry)
        if end is not None:
            published.ended.append(end)
            return None
        if entry.error is None and not is_sent(entry):
            published.not_sent.append(job)
            return None
        return entry

    def _disconnect_after(self, error: BaseException, jobs: Sequence[OutgoingJob]) -> None:
        """Drop the connection after an error of a batch."""
        loggable = _loggable(error, jobs)
        if self._broker.is_connection_error(error):
            self._sent_since = False
            self._broker.disconnect(loggable)
        else:
            trace = loggable if isinstance(loggable, BaseException) else None
            logger.error(
                "A batch failed; its messages go one by one: %s", loggable, exc_info=trace, extra={"action": "publish"}
            )
            self._broker.reconnect()

    def _reconnect_after(self, error: BaseException) -> None:
        if self._broker.is_connection_error(error) or self._broker.is_refusal(error):
            self._broker.reconnect()

    def _what_failed(self, error: BaseException) -> Refused:
        if self._broker.is_refusal(error):
            return Refused.BY_BROKER
        return Refused.BREAKS_CONNECTION if self._broker.is_connection_error(error) else Refused.NO_MESSAGE

    def _suspect(self, job: OutgoingJob, strikes: int) -> None:
        self._suspects[job.id] = max(strikes, self._suspects.get(job.id, 0))
        if len(self._suspects) > SUSPECTS:
            del self._suspects[next(iter(self._suspects))]

    def _is_culprit(self, job: OutgoingJob) -> bool:
        """Return whether this message causes the connection error: a task's `apply_async` may raise one too.

        It does, if its own sending has failed before, and others have been sent since (that is why it goes last).
        """
        return self._suspects.get(job.id) == 2 and self._sent_since


def _loggable(error: BaseException, jobs: Sequence[OutgoingJob]) -> BaseException | str:
    """Return what may be logged of an error in sending these: one of Redis may quote the command, with the messages."""
    return error_text(error, sensitive=True) if any(job.sensitive for job in jobs) else error


def _log_sending(jobs: Sequence[OutgoingJob]) -> None:
    """Log in Celery's words: one line for each message, or one line for all of them if they are many."""
    level = logging.INFO
    if len(jobs) > LOGGED_SINGLY:
        level = logging.DEBUG
        tasks = Counter(job.task for job in jobs).most_common(LOGGED_SINGLY)
        counted = ", ".join(f"{task}: {count}" for task, count in tasks)
        celery_logger.info("Scheduler: Sending %d due tasks (%s)", len(jobs), counted)
    if celery_logger.isEnabledFor(level):
        for job in jobs:
            celery_logger.log(
                level, "Scheduler: Sending due task %s (%s)", one_line(job.periodic_task), one_line(job.task)
            )
