"""What every benchmark uses: private servers, `celery beat` processes, their processor time, a watch on a queue.

Postgres is durable (fsync on), with room for what is measured; Valkey keeps nothing on disk; RabbitMQ is a classic
durable queue. All share the machine with the beats and with the measuring.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg2
import redis
from kombu import Connection

from celery_pgbeat.embedded import Postgres, Server, Valkey
from tests.harness.cable import Cable
from tests.harness.databases import migrate_database
from tests.harness.processes import Cluster
from tests.harness.rabbitmq import RabbitMQ
from tests.harness.usage import cpu_seconds

POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "4GB", "max_connections": "200"}
BROKERS = ("redis", "amqp")
QUEUE = "pgbeat-benchmark"


@dataclass
class Ground:
    """The servers of a run, each started when first asked for.

    Attributes:
        options: settings of Postgres.
        commit_delay: seconds that Postgres waits before it writes commits to the disk.
        link_delay: seconds that a byte is under way between Postgres and the beats and workers, in either direction.
    """

    folder: Path
    _stack: ExitStack
    options: Mapping[str, str] = field(default_factory=lambda: POSTGRES)
    commit_delay: float = 0.0
    link_delay: float = 0.0

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)

    @cached_property
    def postgres(self) -> Postgres:
        """The Postgres."""
        return self._stack.enter_context(Postgres(options=self.options))

    @cached_property
    def valkey(self) -> Valkey:
        """The Valkey."""
        return self._stack.enter_context(Valkey())

    @cached_property
    def rabbitmq(self) -> RabbitMQ:
        """The RabbitMQ, where its binary is on the machine."""
        return self._stack.enter_context(RabbitMQ())

    def broker(self, kind: str) -> Server:
        """The server of a kind: `redis` or `amqp`."""
        return self.valkey if kind == "redis" else self.rabbitmq

    def empty(self, kind: str) -> None:
        """Throw away all messages."""
        if kind == "redis":
            redis.Redis.from_url(self.valkey.url).flushall()
            return
        with Connection(self.rabbitmq.url) as connection, connection.channel() as channel:
            channel.queue_declare(QUEUE, durable=True, auto_delete=False)
            channel.queue_purge(QUEUE)

    @contextmanager
    def database(self, migrated: bool = True) -> Iterator[str]:
        """Lend a new database, with the schema in it."""
        name = f"benchmark_{next(self._numbers)}"
        url = self.postgres.create_database(name)
        if migrated:
            migrate_database(url)
        if self.commit_delay:
            microseconds = round(self.commit_delay * 1e6)
            execute(url, f"alter database {name} set commit_delay = {microseconds}")
            execute(url, f"alter database {name} set commit_siblings = 0")  # wait even if no other transaction is open
        yield url
        execute(self.postgres.url, f"drop database {name} with (force)")

    def like(self, **changes: Any) -> Ground:
        """Return servers of their own under other conditions: `options`, `commit_delay`, `link_delay`."""
        return replace(self, folder=self.place(), **changes)

    def place(self) -> Path:
        """Return a new folder."""
        folder = self.folder / f"place-{next(self._numbers)}"
        folder.mkdir()
        return folder

    @contextmanager
    def cluster(self, database: str, broker: str, **settings: Any) -> Iterator[Cluster]:
        """Lend a place where beats and workers run, all ended afterwards."""
        with Cable(database, delay=self.link_delay) if self.link_delay else nullcontext() as cable:
            cluster = Cluster(self.place(), cable.url if cable else database, broker)
            cluster.settings.update(settings)
            try:
                yield cluster
            except Exception as error:
                raise RuntimeError("\n".join(f"{title}:\n{tail}" for title, tail in cluster.tails())) from error
            finally:
                cluster.end()


@contextmanager
def servers() -> Iterator[Ground]:
    """Lend private servers; stop afterwards those that were asked for."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgbeat-benchmark-")))
        yield Ground(folder, stack)


def execute(url: str, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    """Run one statement by itself."""
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []


def cpu_of(pid: int) -> float:
    """Return the processor seconds that a process and its living children have used."""
    total = 0.0
    for one in (pid, *children_of(pid)):
        with suppress(OSError):  # a child that has ended meanwhile
            total += cpu_seconds(one, with_children=True)
    return total


def children_of(pid: int) -> list[int]:
    """Return the children of a process, and theirs."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def length_of(broker: str, queue: str = QUEUE) -> Callable[[], int]:
    """Return a function that counts the messages of a queue; cheap enough to be called in a loop."""
    if broker.startswith("redis"):
        client = redis.Redis.from_url(broker)
        return lambda: int(client.llen(queue))
    channel = Connection(broker).channel()
    channel.queue_declare(queue, durable=True, auto_delete=False)
    return lambda: int(channel.queue_declare(queue, passive=True).message_count)


def wait_for(length: Callable[[], int], count: int, timeout: float, step: float = 0.002) -> float:
    """Wait until the queue has this many messages; return the instant (`time.time`) at which they were seen.

    Raises:
        TimeoutError: they do not come.
    """
    until = time.monotonic() + timeout
    while (seen := length()) < count:
        if time.monotonic() > until:
            raise TimeoutError(f"{seen} of {count} messages after {timeout} s")
        time.sleep(step)
    return time.time()
