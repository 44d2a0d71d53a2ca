"""Hand messages to the broker, and be honest about what is not known.

An error of the connection means "unknown", never "not sent": such a job is given back and sent again under the
same id, and the guard drops the second copy.

There are three ways, and every message goes the first that is exact for it:

    rendered    made from a template that is proven to equal Celery's own message, and written many at once
    together    made by Celery's own `apply_entry`, and written at once by kombu's batch, where it has one
    one by one  made by Celery's own `apply_entry`, each with its own answer of the broker

If writing many fails, nobody knows which of them is to blame: they go one by one from then on, until each has been
sent or has shown that it is the one.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.send.broker import Broker, Sender
from celery_pgbeat.beat.send.messages import JobEntry, OutgoingJob, Refusal
from celery_pgbeat.beat.send.rendering.eligibility import by_willingness_to_wait
from celery_pgbeat.beat.send.rendering.renderer import MessageBatch, Renderer
from celery_pgbeat.beat.send.returned import Ended, ended, is_sent, watched
from celery_pgbeat.sensitive import error_text
from celery_pgbeat.shown import one_line

if TYPE_CHECKING:
    from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules

__all__ = ["Published", "Publisher", "Sender"]

logger = logging.getLogger(__name__)
celery_logger = logging.getLogger("celery.beat")

BATCH = 250  # messages written at once: what a kill can double
TOLD_SINGLY = 10  # messages written at once that still get a line each in the log
SUSPECTS = 10_000  # that are remembered
COMMANDS = 100 * BATCH  # of a batch of kombu's, which would be written before its end if it had more


@dataclass(slots=True)
class Published:
    """What became of a batch: taken by the broker (with the seconds until each may start), refused, or neither.

    A task's own `apply_async` may also have sent nothing, or have run the task in the beat (`task_always_eager`).
    """

    sent: list[tuple[uuid.UUID, float]] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    unsent: list[uuid.UUID] = field(default_factory=list)
    not_sent: list[OutgoingJob] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)

    def refuse(self, job: OutgoingJob, error: BaseException) -> None:
        """Note that there can be no such message."""
        self.refused.append(Refusal(job.id, job.periodic_task, error, job.sensitive))

    @property
    def settled(self) -> set[uuid.UUID]:
        """The jobs of which no message is to be written."""
        return {
            *(refusal.job for refusal in self.refused),
            *(job.id for job in self.not_sent),
            *(end.job for end in self.ended),
        }


class Abandoned(Exception):
    """A batch was made and is not to be written."""


class Publisher:
    """Publishes on a connection of the beat's own."""

    def __init__(
        self,
        sender: Sender,
        watch: DatabaseClock,
        code: CodeSchedules,
        stopping: Callable[[], bool] = lambda: False,
        ring: Callable[[], None] = lambda: None,
    ) -> None:
        self._sender = sender
        self._watch = watch
        self._code = code
        self._stopping = stopping
        self._renderer = Renderer(sender, lambda name: code.lazy_entry(name) is not None)
        self._broker = Broker(sender, self._renderer.connect, ring)
        self._together = True  # until Redis refuses a part of a batch
        self._suspects: dict[uuid.UUID, int] = {}  # 1: was among those that broke the connection; 2: it did, alone
        self._sent_since = False

    def ready(self) -> bool:
        """Tell whether the broker is there; probes it if it was away and it is time to."""
        return self._broker.ready()

    def is_ready_within(self, seconds: float) -> bool:
        """Tell whether the broker is there, and wait no longer for a probe, whose end rings."""
        return self._broker.is_ready_within(seconds)

    @property
    def probe_in(self) -> float:
        """Seconds until the next probe of a broker that is away."""
        return self._broker.probe_in

    def close(self) -> None:
        """Drop the connection."""
        self._broker.close()

    def publish(self, jobs: Sequence[OutgoingJob], lease_ends: float) -> Published:
        """Publish while the lease holds and nobody wants to stop; what cannot be sent is reported, never kept."""
        answer = Published()
        for first in range(0, len(jobs), BATCH):
            queue = deque(self._sorted(jobs[first : first + BATCH]))
            # Read before each write: a stop may fall between any two.
            while queue and self._broker.producer is not None and boottime() < lease_ends and not self._stopping():
                item = queue.popleft()
                if isinstance(item, MessageBatch):
                    self._publish_parcel(item, answer)
                elif len(item) > 1:
                    self._publish_together(item, lease_ends, answer)
                else:
                    self._publish_one(item[0], answer)
            for item in queue:
                answer.unsent.extend(job.id for job in (item.jobs if isinstance(item, MessageBatch) else item))
        return answer

    def _sorted(self, jobs: Sequence[OutgoingJob]) -> list[MessageBatch | list[OutgoingJob]]:
        """Return what is to be written at once, in this order; suspects alone and last, the worst at the end."""
        suspects = sorted((job for job in jobs if job.id in self._suspects), key=lambda job: self._suspects[job.id])
        batches, rest = self._rendered([job for job in jobs if job.id not in self._suspects])
        together: list[OutgoingJob] = []
        alone = rest
        if len(rest) > 1 and self._together and getattr(self._broker.producer, "supports_batch_publish", False):
            together, alone = by_willingness_to_wait(self._sender, rest)
        return [*batches, *filter(None, [together]), *([job] for job in (*alone, *suspects))]

    def _rendered(self, jobs: Sequence[OutgoingJob]) -> tuple[list[MessageBatch], Sequence[OutgoingJob]]:
        """Render what can be; where the broker refuses a queue, the plain way will tell whose."""
        if self._broker.producer is None:
            return [], jobs
        try:
            return self._renderer.render(jobs, self._watch.database_time)
        except BaseException as error:
            foreseen = self._broker.is_connection_error(error) or self._broker.is_refusal(error)
            extra = {"action": "publish"}
            logger.warning("Nothing can be rendered now: %s", error, exc_info=not foreseen, extra=extra)
            self._renew_after(error)
            return [], jobs

    def _publish_parcel(self, parcel: MessageBatch, answer: Published) -> None:
        _tell(parcel.jobs)
        try:
            parcel.send()
        except Exception as error:  # noqa: BLE001  whatever it is: what is not known to be taken is not known
            self._lose(error, parcel.jobs)
        for job, delay, taken in zip(parcel.jobs, parcel.delays, parcel.taken, strict=True):
            if taken:
                answer.sent.append((job.id, delay))
                self._sent_since = True
            else:
                answer.unsent.append(job.id)
                self._suspect(job, 1)

    def _publish_together(self, jobs: Sequence[OutgoingJob], lease_ends: float, answer: Published) -> None:
        """Have Celery make the messages and kombu write them at once."""
        writing = False
        sent: list[JobEntry] = []
        try:
            with self._broker.producer.batch(max_size=COMMANDS):
                made = self._made(jobs, answer)
                if boottime() >= lease_ends:
                    raise Abandoned
                writing = True
            sent = made
        except Abandoned:
            logger.warning("The lease ended before %d messages were made", len(jobs), extra={"action": "publish"})
        except Exception as error:  # noqa: BLE001  each transport has errors of its own
            cause = error.__cause__ or error
            # Of what goes into one batch Redis may take some and refuse others, and kombu does not say which.
            self._together = not (writing and self._broker.is_refusal(cause))
            for job in jobs:
                self._suspect(job, 1)
            self._lose(cause, jobs)
        answer.sent.extend((entry.job.id, entry.delay) for entry in sent)
        self._sent_since = self._sent_since or bool(sent)
        known = {entry.job.id for entry in sent} | answer.settled
        answer.unsent.extend(job.id for job in jobs if job.id not in known)

    def _made(self, jobs: Sequence[OutgoingJob], answer: Published) -> list[JobEntry]:
        """Have messages made that wait in the producer; raises if the connection is lost meanwhile."""
        made: list[JobEntry] = []
        for job in jobs:
            if self._stopping():
                break
            entry = self._applied(job, answer)
            if entry is None:
                continue
            if entry.error is None:
                made.append(entry)
            elif self._broker.is_connection_error(entry.error):
                self._suspect(job, 2)
                raise entry.error
            else:
                answer.refuse(job, entry.error)
        return made

    def _publish_one(self, job: OutgoingJob, answer: Published) -> None:
        entry = self._applied(job, answer)
        if entry is None:
            return
        if entry.error is None:
            answer.sent.append((job.id, entry.delay))
            self._suspects.pop(job.id, None)
            self._sent_since = True
        elif self._broker.is_connection_error(entry.error) and not self._is_culprit(job):
            self._suspect(job, 2)
            self._sent_since = False
            self._broker.lose(_shown(entry.error, [job]))
            answer.unsent.append(job.id)
        else:
            answer.refuse(job, entry.error)
            self._suspects.pop(job.id, None)
            self._renew_after(entry.error)

    def _applied(self, job: OutgoingJob, answer: Published) -> JobEntry | None:
        """Have Celery's scheduler, or who wraps it, send a job; what went wrong stands on the entry.

        Returns None where there is no message: the answer says why.
        """
        try:
            now, lazy = self._watch.database_time, self._code.lazy_entry(job.periodic_task)
            entry = JobEntry(job, self._sender.app, now, lazy)
        except BaseException as error:  # noqa: BLE001  a row may hold what no message can
            answer.refuse(job, error)
            return None
        try:
            with watched(entry):
                self._sender.apply_entry(entry, producer=self._broker.producer)
        except BaseException as error:  # noqa: BLE001  one who wraps the scheduler may raise what it does not note
            entry.error = error
        end = ended(entry)
        if end is not None:
            answer.ended.append(end)
            return None
        if entry.error is None and not is_sent(entry):
            answer.not_sent.append(job)
            return None
        return entry

    def _lose(self, error: BaseException, jobs: Sequence[OutgoingJob]) -> None:
        """Give the connection up after an error of a batch."""
        shown = _shown(error, jobs)
        if self._broker.is_connection_error(error):
            self._sent_since = False
            self._broker.lose(shown)
        else:
            trace = shown if isinstance(shown, BaseException) else None
            logger.error(
                "A batch failed; its messages go one by one: %s", shown, exc_info=trace, extra={"action": "publish"}
            )
            self._broker.renew()

    def _renew_after(self, error: BaseException) -> None:
        if self._broker.is_connection_error(error) or self._broker.is_refusal(error):
            self._broker.renew()

    def _suspect(self, job: OutgoingJob, strikes: int) -> None:
        self._suspects[job.id] = max(strikes, self._suspects.get(job.id, 0))
        if len(self._suspects) > SUSPECTS:
            del self._suspects[next(iter(self._suspects))]

    def _is_culprit(self, job: OutgoingJob) -> bool:
        """Tell whether the error is the message's own: a task's `apply_async` may raise a connection error too.

        It was met once before by this message alone, others have been sent since (it is put last for that), and now it
        is met again.
        """
        return self._suspects.get(job.id) == 2 and self._sent_since


def _shown(error: BaseException, jobs: Sequence[OutgoingJob]) -> BaseException | str:
    """Return what may be told of an error in sending these: Redis' own may quote the command, with messages in it."""
    return error_text(error, sensitive=True) if any(job.sensitive for job in jobs) else error


def _tell(jobs: Sequence[OutgoingJob]) -> None:
    """Log in Celery's words: a line for each message, or one for all if they are many."""
    level = logging.INFO
    if len(jobs) > TOLD_SINGLY:
        level = logging.DEBUG
        tasks = Counter(job.task for job in jobs).most_common(TOLD_SINGLY)
        counted = ", ".join(f"{task}: {count}" for task, count in tasks)
        celery_logger.info("Scheduler: Sending %d due tasks (%s)", len(jobs), counted)
    if celery_logger.isEnabledFor(level):
        for job in jobs:
            celery_logger.log(
                level, "Scheduler: Sending due task %s (%s)", one_line(job.periodic_task), one_line(job.task)
            )
