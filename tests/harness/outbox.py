"""A publisher as a beat has it, without a database; and what it left at the broker, to the last byte."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import redis
from celery import Celery
from kombu import Connection
from kombu.exceptions import ChannelError

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.send.broker import Broker
from celery_pgbeat.beat.send.closed_queues import ClosedQueues
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.outgoing_jobs import job_of_recovered, read_texts
from celery_pgbeat.beat.send.publisher import BATCH, Published, Publisher
from celery_pgbeat.beat.send.rendering.renderer import Renderer
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.postgres.beat_queries import Recovered

SOON = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)  # later than any node's clock, so that nothing has expired
LEASE = 60.0  # seconds


# `shop.probe`, due at noon.
PROBE: dict[str, Any] = {
    "periodic_task": "nightly",
    "scheduled_for": datetime(2026, 12, 7, 12, tzinfo=timezone.utc),
    "origin": "schedule",
    "run": 0,
    "task": "shop.probe",
    "args": "[1]",
    "kwargs": '{"a": "ü"}',
    "queue": None,
    "priority": None,
    "sensitive": False,
    "max_run_time": None,
    "schedule": "*/5 * * * *",
    "timezone": "Europe/Berlin",
}


def job(**changes: Any) -> OutgoingJob:
    """Make a job of `shop.probe` that was due at noon."""
    return OutgoingJob(**{"id": uuid.uuid4(), **PROBE, **changes})


def taken_over(row: Recovered) -> OutgoingJob:
    """Make a job as a beat sends it that has taken it over."""
    made = job_of_recovered(row)
    read_texts(made)
    return made


def jobs(count: int, **changes: Any) -> list[OutgoingJob]:
    """Make this many jobs of as many rows."""
    return [
        job(**{"periodic_task": f"row-{n}", "args": f"[{n}]", "kwargs": f'{{"a": "b{n}"}}', **changes})
        for n in range(count)
    ]


class DatabaseClock:
    """The database's time, standing still."""

    database_time = SOON


class Code:
    """What code declares: nothing but lazy entries."""

    def __init__(self) -> None:
        self.lazy: dict[str, tuple[Any, Any]] = {}

    def lazy_entry(self, name: str) -> tuple[Any, Any] | None:
        return self.lazy.get(name)


class Outbox:
    """A publisher, and how many of its messages were rendered.

    Args:
        plainly: have each message sent alone by Celery's own `apply_entry`, as it was before there was another way.
    """

    def __init__(
        self, app: Celery, *, plainly: bool = False, scheduler: Scheduler | None = None, code: Code | None = None
    ) -> None:
        self.code = code or Code()
        self.stopping = False
        self._rendered: set[uuid.UUID] = set()
        sender = scheduler or Scheduler(app, lazy=True)
        self.renderer = Renderer(sender, lambda name: self.code.lazy_entry(name) is not None)
        self.broker = Broker(sender, self.renderer.connect)
        self.closed = ClosedQueues(app)
        self.publisher = Publisher(
            sender,
            DatabaseClock(),  # type: ignore[arg-type]
            self.code,  # type: ignore[arg-type]
            self.broker,
            self.closed,
            self.renderer,
            lambda: self.stopping,
            Observer(),
        )
        self._render = self.renderer.render
        self.renderer.render = self._nothing if plainly else self._counted  # type: ignore[method-assign]
        self.publisher._together = not plainly

    def publish(self, given: Sequence[OutgoingJob], lease: float = LEASE) -> Published:
        """Publish with a lease of this many seconds."""
        assert self.broker.ready()
        lease_ends, published = boottime() + lease, Published()
        for first in range(0, len(given), BATCH):
            batch = self.publisher.publish(given[first : first + BATCH], lease_ends)
            for kind in ("sent", "refused", "unsent", "delayed", "not_sent", "ended"):
                getattr(published, kind).extend(getattr(batch, kind))
        return published

    @property
    def rendered(self) -> int:
        """How many messages were rendered; on a slow machine some were once more."""
        return len(self._rendered)

    def _counted(self, given: Sequence[OutgoingJob], now: datetime) -> Any:
        parcels, rest = self._render(given, now)
        self._rendered.update(job.id for parcel in parcels for job in parcel.jobs)
        return parcels, rest

    def _nothing(self, given: Sequence[OutgoingJob], _now: datetime) -> Any:
        return [], list(given)


@contextmanager
def outbox(app: Celery, **arguments: Any) -> Iterator[Outbox]:
    """Make an outbox for a moment."""
    made = Outbox(app, **arguments)
    try:
        yield made
    finally:
        made.broker.close()


def app_of(broker: str, **settings: Any) -> Celery:
    """Make an app as a beat's; its clock is stopped, as the database's is."""
    app = Celery("outbox", broker=broker, set_as_current=False)
    app.conf.update(pgbeat_url="postgresql://127.0.0.1:1/nowhere", **settings)
    app.now = lambda: SOON.astimezone(app.timezone)
    return app


def taken_from(broker: str, queues: Iterable[str] = ("celery",)) -> list[Any]:
    """Empty a broker, its queues included: equal lists are equal messages in equal order.

    From Redis (key, text) of every list, with the random delivery tags blotted out; from RabbitMQ (queue, properties,
    delivery information, body) of these queues.
    """
    if broker.startswith("redis"):
        with redis.Redis.from_url(broker) as client:
            found = [
                (key.decode(), _blotted(text.decode()))
                for key in sorted(client.keys())
                if client.type(key) == b"list"
                for text in reversed(client.lrange(key, 0, -1))
            ]
            client.flushdb()
        return found
    with Connection(broker) as connection:
        return [message for queue in queues for message in _got(connection, queue)]


def _blotted(text: str) -> str:
    return text.replace(json.loads(text)["properties"]["delivery_tag"], "tag")


def _got(connection: Connection, queue: str) -> Iterator[Any]:
    with connection.channel() as channel:
        try:
            waiting = iter(lambda: channel.basic_get(queue, no_ack=True), None)
            for message in waiting:
                about = {key: message.delivery_info[key] for key in ("exchange", "routing_key", "redelivered")}
                body = message.body if isinstance(message.body, bytes) else message.body.encode()
                yield queue, message.properties, about, body
            channel.queue_delete(queue)
        except ChannelError:
            return  # there is no such queue
