"""A tap at a queue: takes every message as it comes, notes the instant, and may pass it on, once or in copies.

The messages show what beats really sent, and when, without the product's own tables.
"""

from __future__ import annotations

import base64
import gc
import json
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from types import TracebackType
from typing import Any, Protocol

import psycopg2
import redis
from kombu import Connection, Consumer, Exchange, Producer, Queue
from redis.backoff import NoBackoff
from redis.retry import Retry

PATIENCE = 0.2  # seconds that one look at an empty queue waits
AT_ONCE = 500  # messages taken in one go
ANSWER_TIMEOUT = 60.0  # seconds; a broker that is stopped or restarted is away for as long, a busy one too


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message as it reached the broker.

    Attributes:
        pid: the process that sent it, from Celery's header `origin`.
        seen_at: when it was taken off the queue, by the database's clock; never early.
    """

    job: str
    periodic_task: str | None
    scheduled_for: datetime | None
    attempt: int
    pid: int
    seen_at: datetime
    args: list[Any]
    kwargs: dict[str, Any]
    headers: Mapping[str, Any]


def database_clock(url: str) -> Callable[[], datetime]:
    """Read the database's clock once; what is returned goes on from there, up to a round trip late."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        asked = time.monotonic()
        cursor.execute("select clock_timestamp()")
        (told,) = cursor.fetchone()
    return lambda: told + timedelta(seconds=time.monotonic() - asked)


class Tap:
    """Takes the messages of a queue, from a thread of its own, while it is open.

    Args:
        url: the broker.
        queue: the queue that the rows of the test name; on Redis its messages of the default priority only.
        onward: the queue to pass the messages on to, where workers wait; None to keep them.
        copies: how often each is passed on.
        now: the clock for `seen_at`, see `database_clock`.

    Example:
        >>> with Tap(cluster.broker, now=database_clock(cluster.database)) as tap:  # doctest: +SKIP
        ...     eventually(lambda: len(tap.arrivals) == 100, 10, "a hundred messages")
    """

    def __init__(
        self,
        url: str,
        queue: str = "celery",
        *,
        onward: str | None = None,
        copies: int = 1,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._arrivals: list[Arrival] = []
        self._seen: deque[tuple[Raw, datetime]] = deque()
        self._url = url
        self._queue = queue
        self._onward = onward
        self._copies = copies
        self._now = now
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    @property
    def arrivals(self) -> list[Arrival]:
        """What has come so far. It is read only now: the taking must keep up with the beats."""
        while self._seen:
            raw, seen_at = self._seen.popleft()
            self._arrivals.append(_read(raw(), seen_at))
        return self._arrivals

    @property
    def taken(self) -> int:
        """How many have come so far, unread."""
        return len(self._arrivals) + len(self._seen)

    def __enter__(self) -> Tap:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Hang up for a while: a broker that is taken away must not take a message with it that we have half read."""
        self._close()
        yield
        self._open()

    def _open(self) -> None:
        # What it keeps grows to some hundred thousand objects: a collection would stop the taking for a second, which
        # would count as lateness of the beats.
        gc.disable()
        self._closing.clear()
        self._thread = threading.Thread(target=self._run, name=f"tap-{self._queue}")
        self._thread.start()

    def _close(self) -> None:
        thread, self._thread = self._thread, None
        self._closing.set()
        if thread is not None:
            thread.join()
            gc.enable()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        try:
            line: ProcessConnection = RedisLine(self._url) if self._url.startswith("redis") else AmqpLine(self._url)
            with closing(line):
                self._take(line)
                while not self._closing.is_set():
                    self._take(line)
        except Exception as error:  # noqa: BLE001  raised in the test when the tap is closed
            self._error = error

    def _take(self, line: ProcessConnection) -> None:
        taken = line.take(self._queue)
        seen_at = self._now()
        if self._onward is not None:
            for parcel in (raw() for raw in taken):
                for _ in range(self._copies):
                    line.put(self._onward, parcel)
        line.settle()
        self._seen.extend((raw, seen_at) for raw in taken)


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """A message as a broker hands it out, body and headers apart."""

    body: str
    headers: dict[str, Any]
    properties: dict[str, Any]
    content_type: str
    content_encoding: str


Raw = Callable[[], MessageBatch]  # a message as it came, to be taken apart


class ProcessConnection(Protocol):
    """One connection to a broker."""

    def take(self, queue: str) -> list[Raw]:
        """Take what waits in a queue; wait a little for the first one."""

    def put(self, queue: str, parcel: MessageBatch) -> None:
        """Add a message to a queue."""

    def settle(self) -> None:
        """Let go of what was taken."""

    def close(self) -> None:
        """Hang up."""


class RedisLine:
    """A list of a Redis: new messages come in on the left, as kombu has it.

    Messages leave the queue only in the transaction that passes them on: an answer that is lost loses no message.
    """

    def __init__(self, url: str) -> None:
        # A command that is sent again would remove messages that nobody has seen: an error ends the tap instead.
        self._client = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), socket_timeout=ANSWER_TIMEOUT)
        self._transaction = self._client.pipeline(transaction=True)
        self._queue = ""
        self._taken = 0

    def take(self, queue: str) -> list[Raw]:
        """Take what waits in a queue; wait a little for the first one."""
        self._queue, self._taken = queue, 0
        if self._client.blmove(queue, queue, PATIENCE, "RIGHT", "RIGHT") is None:
            return []
        oldest_last = self._client.lrange(queue, -AT_ONCE, -1)
        self._taken = len(oldest_last)
        return [partial(self._parcel, raw) for raw in reversed(oldest_last)]

    def put(self, queue: str, parcel: MessageBatch) -> None:
        """Add a message to a queue."""
        properties = {
            **parcel.properties,
            # Workers keep what they have taken under this tag: two copies of one tag would be one to them.
            "delivery_tag": str(uuid.uuid4()),
            "delivery_info": {"exchange": "", "routing_key": queue},  # where it goes when it is delivered again
        }
        message = {
            "body": base64.b64encode(parcel.body.encode()).decode(),
            "headers": parcel.headers,
            "properties": properties,
            "content-type": parcel.content_type,
            "content-encoding": parcel.content_encoding,
        }
        self._transaction.lpush(queue, json.dumps(message))

    def settle(self) -> None:
        """Pass on what was put, and remove what was taken."""
        if self._taken:
            self._transaction.ltrim(self._queue, 0, -self._taken - 1)
        self._transaction.execute()

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _parcel(self, raw: bytes) -> MessageBatch:
        message = json.loads(raw)
        body, properties = message["body"], message["properties"]
        if properties.get("body_encoding") == "base64":
            body = base64.b64decode(body).decode()
        return MessageBatch(body, message["headers"], properties, message["content-type"], message["content-encoding"])


class AmqpLine:
    """A queue of a RabbitMQ; a message is let go of once it has been passed on."""

    def __init__(self, url: str) -> None:
        # What is passed on must be safe before it is let go of: the broker may be killed in between.
        self._connection = Connection(url, transport_options={"confirm_publish": True})
        self._channel: Any = self._connection.channel()
        self._producer = Producer(self._channel)
        self._consumer: Consumer | None = None
        self._inbox: list[Any] = []  # grows whenever we wait for an answer on this channel
        self._taken: list[Any] = []

    def take(self, queue: str) -> list[Raw]:
        """Take what waits in a queue; wait a little for the first one."""
        if self._consumer is None:
            self._consumer = Consumer(self._channel, [_declared(queue)], on_message=self._inbox.append)
            self._consumer.qos(prefetch_count=AT_ONCE)
            self._consumer.consume()
        with suppress(TimeoutError):
            self._connection.drain_events(timeout=PATIENCE)
            while len(self._inbox) < AT_ONCE:
                self._connection.drain_events(timeout=0.001)
        self._taken = self._inbox.copy()
        del self._inbox[: len(self._taken)]
        return [partial(self._parcel, message) for message in self._taken]

    def put(self, queue: str, parcel: MessageBatch) -> None:
        """Add a message to a queue."""
        self._producer.publish(
            parcel.body,
            routing_key=queue,
            declare=[_declared(queue)],
            content_type=parcel.content_type,
            content_encoding=parcel.content_encoding,
            headers=parcel.headers,
            **parcel.properties,
        )

    def settle(self) -> None:
        """Let go of what was taken."""
        if self._taken:
            self._taken[-1].ack(multiple=True)

    def close(self) -> None:
        """Hang up."""
        self._connection.release()

    def _parcel(self, message: Any) -> MessageBatch:
        kept = ("correlation_id", "reply_to", "priority", "delivery_mode")
        properties = {name: value for name, value in message.properties.items() if name in kept}
        headers = dict(message.headers)
        return MessageBatch(message.body, headers, properties, message.content_type, message.content_encoding)


def _declared(queue: str) -> Queue:
    """Return the queue as Celery declares one that a row names."""
    return Queue(queue, Exchange(queue), routing_key=queue)


def _read(parcel: MessageBatch, seen_at: datetime) -> Arrival:
    headers = parcel.headers
    ours = headers.get("pgbeat") or {}
    args, kwargs, _ = json.loads(parcel.body)
    return Arrival(
        job=headers["id"],
        periodic_task=ours.get("periodic_task"),
        scheduled_for=datetime.fromisoformat(ours["scheduled_for"]) if ours else None,
        attempt=headers.get("retries") or 0,
        pid=int(headers["origin"].partition("@")[0].removeprefix("gen")),
        seen_at=seen_at,
        args=args,
        kwargs=kwargs,
        headers=headers,
    )
