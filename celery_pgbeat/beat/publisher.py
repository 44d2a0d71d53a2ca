"""Hand messages to the broker, and be honest about what is not known.

An error of the connection means "unknown", never "not sent": such a job is given back and sent again under the
same id, and the guard drops the second copy. A broker that is away is probed, never waited for.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kombu.exceptions import OperationalError

from celery_pgbeat.beat.clock import Watch, boottime
from celery_pgbeat.beat.messages import Job, JobEntry, delay_of

if TYPE_CHECKING:
    from celery_pgbeat.beat.code_schedules import CodeSchedules

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 3.0  # seconds for one attempt to reach the broker
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0  # seconds between two probes of a broker that is away

# Where the user has not decided otherwise: without these a frozen Redis blocks a beat for ever, and a RabbitMQ
# that dies loses every message that it had not confirmed.
CAUTION: dict[str, dict[str, Any]] = {
    "redis": {"socket_timeout": 5.0, "socket_connect_timeout": CONNECT_TIMEOUT, "socket_keepalive": True},
    "amqp": {"confirm_publish": True, "read_timeout": 10, "write_timeout": 10},
}


class Sender(Protocol):
    """What publishing needs of Celery's scheduler: others may have wrapped `apply_entry`, so it is called there."""

    app: Any
    Producer: Any

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send one entry; what went wrong stands on the entry."""


@dataclass(slots=True)
class Published:
    """What became of a batch: taken by the broker (with the seconds until each may start), refused, or neither."""

    sent: list[tuple[uuid.UUID, float]] = field(default_factory=list)
    refused: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    unsent: list[uuid.UUID] = field(default_factory=list)


class Publisher:
    """Publishes through Celery's own `apply_entry`, on a connection of the beat's own."""

    def __init__(
        self, sender: Sender, watch: Watch, code: CodeSchedules, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self._sender = sender
        self._watch = watch
        self._code = code
        self._stopping = stopping
        self._suspects: set[uuid.UUID] = set()
        self._sent_since = False
        self._connection: Any = None
        self._producer: Any = None
        self._pause = 0.0
        self._probe_at = 0.0

    def ready(self) -> bool:
        """Tell whether the broker is there; probes it if it was away and it is time to."""
        if self._producer is not None and self._connection.connected:
            return True
        if boottime() < self._probe_at:
            return False
        try:
            self._connect()
        except Exception as error:  # noqa: BLE001  each transport has errors of its own; the broker is away
            self._lose(error)
            return False
        if self._pause:
            logger.warning("The broker is back.", extra={"action": "publish"})
        self._pause = 0.0
        return True

    @property
    def probe_in(self) -> float:
        """Seconds until the next probe of a broker that is away."""
        return max(0.0, self._probe_at - boottime())

    def publish(self, jobs: Sequence[Job], lease_ends: float) -> Published:
        """Publish while the lease holds and nobody wants to stop; what cannot be sent is reported, never kept."""
        answer = Published()
        queue = deque(sorted(jobs, key=lambda job: job.id in self._suspects))
        # Read before each message: a stop may fall between any two.
        while queue and self._producer is not None and boottime() < lease_ends and not self._stopping():
            self._publish_one(queue.popleft(), answer)
        answer.unsent.extend(job.id for job in queue)
        return answer

    def _publish_one(self, job: Job, answer: Published) -> None:
        now = self._watch.database_time
        try:
            entry = JobEntry(job, self._sender.app, now, self._code.lazy_entry(job.periodic_task))
        except Exception as error:  # noqa: BLE001  a row may hold what no message can
            answer.refused.append((job.id, f"{type(error).__name__}: {error}"))
            return
        self._sender.apply_entry(entry, producer=self._producer)
        if entry.error is None:
            answer.sent.append((job.id, delay_of(entry.options, now)))
            self._suspects.discard(job.id)
            self._sent_since = True
        elif self._is_connection_error(entry.error) and not self._is_culprit(job):
            self._suspects.add(job.id)
            self._sent_since = False
            self._lose(entry.error)
            answer.unsent.append(job.id)
        else:
            answer.refused.append((job.id, f"{type(entry.error).__name__}: {entry.error}"))
            self._suspects.discard(job.id)
            self._renew_after(entry.error)

    def _is_culprit(self, job: Job) -> bool:
        """Tell whether the error is the message's own: a task's `apply_async` may raise a connection error too.

        It was met once before, others have been sent since (it is put last for that), and now it is met again.
        """
        return job.id in self._suspects and self._sent_since

    def close(self) -> None:
        """Drop the connection."""
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            try:
                connection.release()
            except Exception:
                logger.debug("Closing the broker connection failed", exc_info=True)

    def _connect(self) -> None:
        self.close()
        connection = self._sender.app.connection_for_write(connect_timeout=CONNECT_TIMEOUT)
        caution = CAUTION.get(connection.transport.driver_type, {})
        connection.transport_options = {**caution, **(connection.transport_options or {})}
        self._connection = connection
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=CONNECT_TIMEOUT)
        connection.default_channel  # noqa: B018  virtual transports connect with the first channel only
        self._producer = self._sender.Producer(connection, auto_declare=False)

    def _renew_after(self, error: BaseException) -> None:
        """Make the connection anew if the refusal may have closed it, or its channel, as AMQP's do."""
        if self._is_connection_error(error) or isinstance(error, tuple(self._connection.channel_errors)):
            self.close()
            self.ready()

    def _lose(self, error: BaseException) -> None:
        if not self._pause:
            logger.error(
                "The broker is not usable: %s. Nothing is marked until it is back; other beats may reach it.",
                error,
                extra={"action": "publish"},
            )
        # The first probe follows at once: a restarted broker breaks old connections and takes new ones.
        self._probe_at = boottime() + self._pause
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        self.close()

    def _is_connection_error(self, error: BaseException) -> bool:
        connection = self._connection
        known: tuple[type[BaseException], ...] = (OSError, OperationalError)
        if connection is not None:
            known += tuple(connection.connection_errors) + tuple(connection.recoverable_connection_errors)
        return isinstance(error, known)
