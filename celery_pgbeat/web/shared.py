"""Live updates: one read of the database serves all viewers, as server-sent events.

Each viewer's stream asks for the snapshot every few seconds. The first one to ask reads it, the others get the same
one: the database sees one reader, however many look, and none while no page is open. There is no task in the background
that could be left behind.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

from celery_pgbeat.errors import PgBeatError

Read = TypeVar("Read")

WAKES_EVERY = 0.5  # seconds; after this an open stream has noticed that the server stops


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast streams go, in seconds.

    Attributes:
        every: between two reads.
        lasts: how long a stream is; then the browser connects again, and its right to look is checked again.
        alive: after how long without news a stream says that it is there, because proxies cut silent ones.
    """

    every: float = 6.0
    lasts: float = 60.0
    alive: float = 15.0


class Shared(Generic[Read]):
    """A value that is read at most every few seconds, however many streams ask."""

    def __init__(self, read: Callable[[], Read], every: float, limiter: anyio.CapacityLimiter) -> None:
        self._read = read
        self._every = every
        self._limiter = limiter
        self._reading = anyio.Lock()
        self._known: tuple[float, Read | PgBeatError] | None = None

    async def get(self) -> Read:
        """Return the value.

        Raises:
            PgBeatError: it could not be read; all calls within the same few seconds get the same error.
        """
        async with self._reading:
            if self._known is None or time.monotonic() >= self._known[0]:
                value = await anyio.to_thread.run_sync(self._tried, limiter=self._limiter)
                self._known = (time.monotonic() + self._every, value)
            value = self._known[1]
        if isinstance(value, PgBeatError):
            raise value
        return value

    def _tried(self) -> Read | PgBeatError:
        try:
            return self._read()
        except PgBeatError as error:
            return error


async def events(
    get: Callable[[], Awaitable[Read]],
    parts_of: Callable[[Read], Mapping[str, str]],
    away: Callable[[PgBeatError], str],
    pace: Pace,
    is_over: Callable[[], bool],
) -> AsyncIterator[str]:
    """Iterate over the events of one viewer: what has changed on the page, or that the database is away.

    Args:
        get: returns what all viewers see.
        parts_of: the parts of the page by their ids, as HTML.
        away: the sentence to show if it cannot be read.
        pace: how fast.
        is_over: whether the server is about to stop.
    """
    yield "retry: 3000\n\n"
    known: Mapping[str, str] = {}
    ends = time.monotonic() + pace.lasts
    silent_since = time.monotonic()
    while time.monotonic() < ends and not is_over():
        try:
            snapshot = await get()
        except PgBeatError as error:
            name, news = "away", {"sentence": away(error)}
            known = {}
        else:
            parts = await anyio.to_thread.run_sync(partial(parts_of, snapshot))
            name, news = "parts", {id: html for id, html in parts.items() if known.get(id) != html}
            known = parts
        if news:
            yield f"event: {name}\ndata: {json.dumps(news)}\n\n"
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since >= pace.alive:
            yield ": here\n\n"
            silent_since = time.monotonic()
        await _sleep(pace.every, is_over)


async def _sleep(seconds: float, is_over: Callable[[], bool]) -> None:
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0 and not is_over():
        await anyio.sleep(min(left, WAKES_EVERY))
