"""A process that takes the messages of a Redis list as they come, and knows when each of them came."""

from __future__ import annotations

import json
import multiprocessing
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any

import redis

from benchmarks.ground import QUEUE

PATIENCE = 0.2  # seconds that one look at an empty list waits
AT_ONCE = 500  # messages taken in one go


@dataclass
class Arrivals:
    """What came: of each message when it was scheduled for and when it was taken, as seconds since 1970."""

    scheduled_for: array[float] = field(default_factory=lambda: array("d"))
    seen_at: array[float] = field(default_factory=lambda: array("d"))

    def by_interval(self, begin: float, seconds: float) -> dict[int, list[float]]:
        """Return the lateness (seconds) of those scheduled in each interval of this many seconds, counted from 0."""
        found: dict[int, list[float]] = {}
        for scheduled_for, seen_at in zip(self.scheduled_for, self.seen_at, strict=True):
            found.setdefault(int((scheduled_for - begin) // seconds), []).append(seen_at - scheduled_for)
        return found


class Consumer:
    """The process, seen from outside."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    def stop(self) -> Arrivals:
        """End it, and return what came."""
        self._line.send(None)
        found: Arrivals = self._line.recv()
        return found


@contextmanager
def consumer(broker: str, onward: str | None = None) -> Iterator[Consumer]:
    """Start one and lend it once it takes; it passes what it took on to another list, if one is named."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=consume, args=(broker, onward, theirs), daemon=True)
    process.start()
    ours.recv()
    try:
        yield Consumer(ours)
    finally:
        process.terminate()
        process.join()


def consume(broker: str, onward: str | None, line: Connection) -> None:
    """Be the process."""
    client = redis.Redis.from_url(broker)
    arrivals = Arrivals()
    line.send(None)
    while not line.poll():
        taken = take(client, QUEUE, AT_ONCE)
        seen_at = time.time()
        if taken and onward is not None:
            client.lpush(onward, *taken)
        for raw in taken:
            scheduled_for = datetime.fromisoformat(headers(raw)["pgbeat"]["scheduled_for"])
            arrivals.scheduled_for.append(scheduled_for.timestamp())
            arrivals.seen_at.append(seen_at)
    line.send(arrivals)


def take(client: redis.Redis, queue: str, most: int) -> list[bytes]:
    """Take what is there, and wait a little for the first."""
    first: Any = client.brpop([queue], timeout=PATIENCE)
    return [] if first is None else [first[1], *(client.rpop(queue, most) or [])]


def headers(raw: bytes) -> dict[str, Any]:
    """Return a message's headers."""
    found: dict[str, Any] = json.loads(raw)["headers"]
    return found
