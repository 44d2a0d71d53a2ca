"""Makes batches for the broker from jobs; returns the jobs that cannot be rendered exactly, for Celery to send."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.rendering.amqp_writer import AmqpWriter
from celery_pgbeat.beat.send.rendering.body import Clocks
from celery_pgbeat.beat.send.rendering.capture import NotRenderable
from celery_pgbeat.beat.send.rendering.eligibility import SendPath, is_listened_to, send_path
from celery_pgbeat.beat.send.rendering.message_template import (
    MessageTemplate,
    RenderMismatch,
    build_template,
    template_key,
)
from celery_pgbeat.beat.send.rendering.redis_writer import RedisWriter
from celery_pgbeat.beat.send.rendering.writer import Writer

if TYPE_CHECKING:
    from celery_pgbeat.beat.send.broker import Sender

logger = logging.getLogger(__name__)

WORTH_A_TEMPLATE = 4  # jobs; to build one costs as much as two messages do
MOST_TEMPLATES = 1000  # that are kept


@dataclass(slots=True)
class MessageBatch:
    """Messages that are written to the broker at once.

    Attributes:
        taken: for each job whether the broker has taken its message; None while that is not known.
    """

    writer: Writer
    place: str
    jobs: list[OutgoingJob] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    taken: list[bool | None] = field(default_factory=list)

    def add(self, job: OutgoingJob, delay: float, message: Any) -> None:
        """Add one message."""
        self.jobs.append(job)
        self.delays.append(delay)
        self.messages.append(message)
        self.taken.append(None)

    def send(self) -> None:
        """Write them, and wait for the broker's answers."""
        self.writer.write(self.place, self.messages, self.taken)


@dataclass(slots=True)
class Alike:
    """The jobs of a batch that have a template in common.

    Attributes:
        delay: seconds until each may start.
    """

    first: OutgoingJob
    count: int = 0
    template: MessageTemplate | None = None
    delay: float = 0.0


class Renderer:
    """Renders for one beat; each connection has a writer of its own, and its own templates.

    Any thread may connect, one thread renders: a new connection is noted, and used from the next rendering on.
    """

    def __init__(self, sender: Sender, is_lazy: Callable[[str], bool]) -> None:
        self._sender = sender
        self._is_lazy = is_lazy
        self._connected: tuple[Any, Writer | None] = (None, None)  # a producer and its writer
        self._producer: Any = None  # the producer for which the templates were built
        self._send_path: SendPath | None = None
        self._templates: OrderedDict[Hashable, MessageTemplate | Exception | int] = OrderedDict()

    def connect(self, producer: Any) -> None:
        """Render for this connection from now on."""
        self._connected = (producer, _writer_for(producer.connection))

    def render(self, jobs: Sequence[OutgoingJob], now: datetime) -> tuple[list[MessageBatch], list[OutgoingJob]]:
        """Return what to write, and the jobs that Celery has to send.

        Raises:
            Exception: the connection is lost, or the broker refuses a queue.
        """
        writer = self._current_writer()
        current = None if writer is None else send_path(self._sender)
        if writer is None or current is None:
            return [], list(jobs)
        if current != self._send_path:
            self._send_path = current
            self._templates.clear()
        clocks = Clocks(now, self._sender.app.now().astimezone(timezone.utc))
        plain: list[OutgoingJob] = []
        groups: dict[Hashable, Alike] = {}
        grouped: list[tuple[Alike, OutgoingJob]] = []
        for job in jobs:
            if self._is_lazy(job.periodic_task):
                plain.append(job)
                continue
            key = template_key(job)
            group = groups.get(key)
            if group is None:
                group = groups[key] = Alike(job)
            group.count += 1
            grouped.append((group, job))
        self._find_templates(groups, writer, current, clocks)
        batches: dict[str, MessageBatch] = {}
        for group, job in grouped:
            if group.template is None:
                plain.append(job)
                continue
            try:
                message = group.template.render(job, clocks)
            except Exception:  # noqa: BLE001  Celery will raise it again
                plain.append(job)
                continue
            place = group.template.template.place
            batch = batches.get(place)
            if batch is None:
                batch = batches[place] = MessageBatch(writer, place)
            batch.add(job, group.delay, message)
        return list(batches.values()), plain

    def _current_writer(self) -> Writer | None:
        """Return the writer of the current connection; drop the templates of another one."""
        producer, writer = self._connected
        if producer is not self._producer:
            self._producer = producer
            for key, known in list(self._templates.items()):
                if isinstance(known, MessageTemplate):
                    del self._templates[key]
        return writer

    def _find_templates(
        self, groups: Mapping[Hashable, Alike], writer: Writer, current: SendPath, clocks: Clocks
    ) -> None:
        """Give each group the template that can be used now, after declaring its queues."""
        declared: set[int] = set()
        for key, group in groups.items():
            if is_listened_to(group.first.task):  # before a template is built: that makes messages which are not sent
                continue
            template = self._known(key, group.first, group.count, writer, current, clocks)
            if template is None:
                continue
            for entity in template.declared:
                if id(entity) not in declared:
                    declared.add(id(entity))
                    self._declare(key, entity)
            group.template, group.delay = template, template.body.delay(clocks)

    def _declare(self, key: Hashable, entity: Any) -> None:
        try:
            self._producer.maybe_declare(entity)
        except Exception as error:
            if isinstance(error, tuple(self._producer.connection.channel_errors)):
                self._templates[key] = NotRenderable("the broker refuses its queue")
            raise

    def _known(
        self, key: Hashable, job: OutgoingJob, count: int, writer: Writer, current: SendPath, clocks: Clocks
    ) -> MessageTemplate | None:
        """Return the template, built now if there were enough jobs for it."""
        known = self._templates.get(key, 0)
        if isinstance(known, MessageTemplate) and known.task is not self._sender.app.tasks.get(job.task):
            known = WORTH_A_TEMPLATE
        if isinstance(known, int):
            known += count
            if known >= WORTH_A_TEMPLATE:
                known = self._built(job, writer, current, clocks) or 0
            self._templates[key] = known
        self._templates.move_to_end(key)
        if len(self._templates) > MOST_TEMPLATES:
            self._templates.popitem(last=False)
        return known if isinstance(known, MessageTemplate) else None

    def _built(
        self, job: OutgoingJob, writer: Writer, current: SendPath, clocks: Clocks
    ) -> MessageTemplate | Exception | None:
        try:
            return build_template(self._sender, writer, current, job, clocks)
        except NotRenderable as error:
            return error
        except RenderMismatch as error:
            logger.warning(
                "Messages of %r are left to Celery: %s. Please report it with the versions of celery and kombu",
                job.task,
                error,
                extra={"action": "publish"},
            )
            return error
        except Exception:
            logger.debug(
                "The template of %r was not built from %r", job.task, job.periodic_task, exc_info=not job.sensitive
            )
            return None


def _writer_for(connection: Any) -> Writer | None:
    kind = connection.transport.driver_type
    if kind == "redis" and RedisWriter.fits(connection):
        return RedisWriter(connection)
    if kind == "amqp" and AmqpWriter.fits(connection):
        return AmqpWriter(connection)
    return None
