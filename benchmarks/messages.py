"""Messages: how many a second a beat hands to a broker, each way that it has; no SQL.

Four ways in one run, so that the ratios hold on whatever machine: the broker's limit (ready bytes of one message, the
same write and the same waiting for answers as the rendered way has), messages that are rendered, messages that Celery
makes and kombu writes together (Redis), and messages that go through Celery one by one. Processor time is this
process's alone.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from typing import Any

from celery import Celery
from kombu import Connection

from benchmarks.ground import BROKERS, QUEUE, Ground
from benchmarks.results import Figure
from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.send.broker import Broker
from celery_pgbeat.beat.send.closed_queues import ClosedQueues
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.publisher import BATCH, Publisher
from celery_pgbeat.beat.send.rendering.renderer import MessageBatch, Renderer
from celery_pgbeat.measures.observer import Observer

ROUNDS = 5
TASKS = ("shop.report", "shop.poll", "shop.clean")
ROWS = 3000  # each with arguments of its own
MANY, FEW = 10_000, 600  # messages of a round: rendered, and through Celery


class Watch:
    """The database's time is ours."""

    @property
    def database_time(self) -> datetime:
        """Return the time."""
        return datetime.now(timezone.utc)


class Code:
    """There is no code."""

    def lazy_entry(self, _name: str) -> None:
        """Return nothing."""


def jobs(count: int) -> list[OutgoingJob]:
    """Make this many jobs of the same few tasks."""
    now = datetime.now(timezone.utc)
    return [
        OutgoingJob(
            id=uuid.uuid4(),
            periodic_task=f"row-{number % ROWS}",
            scheduled_for=now,
            origin="schedule",
            run=0,
            task=TASKS[number % len(TASKS)],
            args=f"[{number % ROWS}]",
            kwargs='{"box": "inbox", "limit": 100}',
            queue=QUEUE,
            priority=None,
            options={"expires": 3600} if number % len(TASKS) == 0 else {},
            sensitive=False,
            max_run_time=None,
            schedule="every 1m",
            timezone="UTC",
        )
        for number in range(count)
    ]


def with_tasks(app: Celery) -> Celery:
    """Register the tasks, so that their arguments are checked as a beat's are."""

    def run(number: int, box: str, limit: int = 10) -> None: ...

    for name in TASKS:
        app.task(name=name, shared=False)(run)
    app.finalize()
    return app


class Ways:
    """One broker, and the ways to it."""

    def __init__(self, url: str) -> None:
        self.url = url
        app = with_tasks(Celery("benchmark", broker=url, set_as_current=False))
        app.conf.pgbeat_url = "postgresql://127.0.0.1:1/nowhere"
        sender = Scheduler(app, lazy=True)
        self.renderer = Renderer(sender, lambda _name: False)
        self.broker = Broker(sender, self.renderer.connect)
        self.publisher = Publisher(
            sender,
            Watch(),  # type: ignore[arg-type]
            Code(),  # type: ignore[arg-type]
            self.broker,
            ClosedQueues(app),
            self.renderer,
            lambda: False,
            Observer(),
        )
        self.empty()
        self.broker.ready()
        self.rendered(BATCH)

    def empty(self) -> None:
        """Delete the queue's messages."""
        with Connection(self.url) as connection, connection.channel() as channel:
            channel.queue_declare(QUEUE, durable=True, auto_delete=False)
            channel.queue_purge(QUEUE)

    def close(self) -> None:
        """Leave nothing behind."""
        self.broker.close()
        with Connection(self.url) as connection, connection.channel() as channel:
            channel.queue_delete(QUEUE)

    def limit(self, count: int) -> Callable[[], None]:
        """Write ready bytes, a batch at once."""
        rendered, _ = self.renderer.render(jobs(BATCH), datetime.now(timezone.utc))
        message = rendered[0].messages[0]
        batches = []
        for first in range(0, count, BATCH):
            batch = MessageBatch(rendered[0].writer, rendered[0].place)
            for each in jobs(min(BATCH, count - first)):
                batch.add(each, 0.0, message)
            batches.append(batch)

        def write() -> None:
            for batch in batches:
                batch.send()

        return write

    def rendered(self, count: int) -> Callable[[], None]:
        """Publish what can be rendered."""
        given = jobs(count)

        def publish() -> None:
            for first in range(0, count, BATCH):
                batch = given[first : first + BATCH]
                told = self.publisher.publish(batch, boottime() + 60)
                assert len(told.sent) == len(batch), (told.refused, told.unsent)

        return publish

    def unrendered(self, count: int, together: bool) -> Callable[[], None]:
        """Publish with nothing rendered."""
        publish = self.rendered(count)

        def plainly() -> None:
            self.publisher._renderer = _Nothing()  # type: ignore[assignment]
            self.publisher._together = together
            try:
                publish()
            finally:
                self.publisher._renderer = self.renderer

        return plainly


class _Nothing:
    def render(self, given: Any, _now: datetime) -> Any:
        return [], given


def measure(
    make: Callable[[int], Callable[[], None]], count: int, after: Callable[[], None]
) -> tuple[list[float], list[float]]:
    """Return messages a second, and the processor time of each in microseconds, by round."""
    make(count)()
    rates, costs = [], []
    for _ in range(ROUNDS):
        after()
        work = make(count)
        begun, used = time.perf_counter(), time.process_time()
        work()
        rates.append(count / (time.perf_counter() - begun))
        costs.append((time.process_time() - used) / count * 1e6)
    after()
    return rates, costs


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--brokers", choices=BROKERS, nargs="+", default=list(BROKERS))


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure each broker."""
    return [figure for kind in options.brokers for figure in _broker(kind, ground.broker(kind).url)]


def _broker(kind: str, url: str) -> list[Figure]:
    ways = Ways(url)
    batches = getattr(ways.broker.producer, "supports_batch_publish", False)
    few = FEW if batches else FEW // 3
    found = {"the broker's limit": measure(ways.limit, MANY, ways.empty)}
    found["rendered"] = measure(ways.rendered, MANY, ways.empty)
    if batches:
        found["together"] = measure(partial(ways.unrendered, together=True), few, ways.empty)
    found["one by one"] = measure(partial(ways.unrendered, together=False), few, ways.empty)
    ways.close()
    rates = {way: Figure(f"{kind}: {way}", "messages/s", values) for way, (values, _) in found.items()}
    for way, figure in rates.items():
        for other in ("the broker's limit", "one by one"):
            if other != way:
                figure.beside(other, rates[other])
    costs = [Figure(f"{kind}: processor time, {way}", "us/message", values) for way, (_, values) in found.items()]
    return [*rates.values(), *costs]
