"""The queues for which the broker takes no message at present, and when each is tried again.

A broker may answer and take nothing: Redis is full or read-only, a user of RabbitMQ has lost the right to write, a full
queue rejects what comes. No row is at fault. Such a queue is *closed*: its jobs wait unsent, and the beat marks no row
that is sent there, so that these rows stay due and `catchup` decides about them afterwards. One of the jobs that wait
is the probe. It is sent again after a pause, which grows until the broker takes a message for this queue.

Rows name no queue of the broker, but a queue of Celery's, or only a task. So a closed queue remembers which of these
led there. The delivery and the cycles both use this, each in its thread.

RabbitMQ rejects a message without a word, also one that alone is too large for its queue. So a job that is rejected
twice waits for longer, and another message is the probe. If that one is taken, the job is a *suspect*: when it is
rejected again it waits, and its queue stays open.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from celery import Celery

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.texts.safe_text import one_line

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds between two messages that are tried for a closed queue
DELAYED_FOR = 30.0  # seconds for which a job waits that is not the probe, if the queue does not open before
UNPROBED_FOR = 5.0  # seconds after which rows are tried: the probe may be gone, or with another beat
FORGOTTEN_AFTER = 30.0  # seconds after which a queue that nothing was sent to counts as open
SUSPECTS = 10_000  # that are remembered
ROUTE = ("queue", "exchange", "routing_key")  # options that decide the queue


class Delayed(NamedTuple):
    """A job that waits, unsent, because its queue is closed; `error` is what the broker said."""

    job: uuid.UUID
    seconds: float
    error: str


class Excluded(NamedTuple):
    """The rows that are not marked: those with these queues, and those without a queue that have these tasks."""

    queues: Collection[str] = ()
    tasks: Collection[str] = ()


@dataclass(slots=True)
class _Closed:
    error: str = ""
    is_probed: bool = True  # whether a message is under way of which it is not known yet what the broker says
    pause: float = 0.0
    refused_at: float = 0.0
    try_at: float = 0.0
    queues: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    rejected: set[uuid.UUID] = field(default_factory=set)  # jobs that may be at fault themselves

    @property
    def is_unprobed(self) -> bool:
        return self.try_at + UNPROBED_FOR < boottime()


class ClosedQueues:
    """Remembers which queues are closed, for one beat.

    Args:
        app: routes tasks to queues.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._closed: dict[str, _Closed] = {}
        self._suspects: dict[uuid.UUID, None] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._closed)

    @property
    def problem(self) -> str | None:
        """What the broker takes no message for and what it said, for people; None if nothing is closed."""
        said: dict[str, list[str]] = {}
        with self._lock:
            self._forget()
            for name, closed in self._closed.items():
                said.setdefault(closed.error, []).append(repr(name))
        takes_nothing = [f"it takes no message for {', '.join(names)}: {error}" for error, names in said.items()]
        return "; ".join(takes_nothing) or None

    @property
    def is_unprobed(self) -> bool:
        """Whether a queue should have been tried by now, so that a few rows are to be marked for it."""
        if not self._closed:
            return False
        with self._lock:
            self._forget()
            return any(closed.is_unprobed for closed in self._closed.values())

    def excluded(self) -> Excluded:
        """Return which rows are not to be marked now."""
        if not self._closed:
            return Excluded()
        with self._lock:
            unmarked = [closed for closed in self._closed.values() if not closed.is_unprobed]
            return Excluded(
                [queue for closed in unmarked for queue in closed.queues],
                [task for closed in unmarked for task in closed.tasks],
            )

    def wait_of(self, job: OutgoingJob) -> Delayed | None:
        """Return for how long a job has to wait; None if it is to be tried, as the probe if its queue is closed."""
        if not self._closed:
            return None
        name = self._queue_of(job)
        with self._lock:
            closed = self._closed.get(name)
            if closed is None:
                return None
            _remember(closed, job)
            if closed.try_at <= boottime():
                closed.try_at = boottime() + LONGEST_PAUSE  # until it is known what became of the probe
                closed.is_probed = True
                return None
            return Delayed(job.id, DELAYED_FOR, closed.error)

    def close(self, job: OutgoingJob, error: str, may_be_its_own: bool = False) -> Delayed:
        """Note that the broker took no message for the queue of this job; return for how long the job waits.

        `may_be_its_own`: the broker does not say whether it would take another message.
        """
        name = self._queue_of(job)
        with self._lock:
            if job.id in self._suspects:
                return Delayed(job.id, DELAYED_FOR, error)
            known = self._closed.get(name)
            closed = self._closed.setdefault(name, _Closed())
            _remember(closed, job)
            if not closed.is_probed:  # another one of the same batch
                return Delayed(job.id, DELAYED_FOR, error)
            closed.error, closed.is_probed = error, False
            closed.pause = min(max(closed.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            closed.refused_at = boottime()
            closed.try_at = closed.refused_at + closed.pause
            waits = DELAYED_FOR if job.id in closed.rejected else closed.pause
            if may_be_its_own:
                closed.rejected.add(job.id)
        if known is None:
            logger.error(
                "The broker takes no message for the queue %r (%s). Its jobs wait, and its rows stay due until then.",
                name,
                one_line(error),
                extra={"action": "publish"},
            )
        return Delayed(job.id, waits, error)

    def took(self, jobs: Collection[OutgoingJob], began: float) -> bool:
        """Note that the broker took these messages; return whether a queue is open again.

        A queue that was closed since `began`, when the first of them was written, had no room for the others.
        """
        if not self._closed:
            return False
        with self._lock:
            before = {name for name, closed in self._closed.items() if closed.refused_at < began}
            names = before & {self._queue_of(job) for job in jobs}
            for name in names:
                self._suspects.update(dict.fromkeys(self._closed.pop(name).rejected))
            for job in jobs:
                self._suspects.pop(job.id, None)
            while len(self._suspects) > SUSPECTS:
                del self._suspects[next(iter(self._suspects))]
        for name in names:
            logger.warning("The broker takes messages for the queue %r again.", name, extra={"action": "publish"})
        return bool(names)

    def _forget(self) -> None:
        """Forget the queues to which nothing was sent for so long; the caller has the lock."""
        now = boottime()
        for name in [name for name, closed in self._closed.items() if closed.try_at + FORGOTTEN_AFTER <= now]:
            del self._closed[name]

    def _queue_of(self, job: OutgoingJob) -> str:
        """Return the name of the broker's queue, or of exchange and key; else what the row has."""
        task = self._app.tasks.get(job.task)
        options = {name: job.options.get(name, getattr(task, name, None)) for name in ROUTE}
        if job.queue is not None:
            options["queue"] = job.queue
        given = {name: value for name, value in options.items() if value is not None}
        try:
            routed: dict[str, Any] = self._app.amqp.router.route(
                dict(given), job.task, json.loads(job.args), json.loads(job.kwargs)
            )
            if routed.get("exchange"):  # it decides, also beside a queue
                return f"{routed['exchange']}/{routed.get('routing_key', '')}"
            return str(routed["queue"].name)
        except Exception:  # noqa: BLE001  a router of the user's; then each task counts as a queue
            return str(job.queue or job.task)


def _remember(closed: _Closed, job: OutgoingJob) -> None:
    """Note what led to this queue, unless the row's own options did: no other row has those."""
    if any(name in job.options for name in ROUTE):
        return
    if job.queue is None:
        closed.tasks.add(job.task)
    else:
        closed.queues.add(job.queue)
