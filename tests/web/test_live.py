"""Live updates: one read serves all who look, a stream says what changed, and it outlives the database."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anyio
import pytest

from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError
from celery_pgbeat.web import dashboard
from celery_pgbeat.web.shared import Pace, Shared, events
from tests.harness.situations import NOON, Situation, ago
from tests.harness.visitor import Visitor

FAST = Pace(every=0.02, lasts=5.0, alive=60.0)


def data_of(visitor: Visitor) -> Iterator[tuple[str, dict[str, str]]]:
    """Iterate over the events of a stream."""
    with visitor.client.stream("GET", "/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "no" == answer.headers["x-accel-buffering"]
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))


class Source:
    """What is read: a number that counts the reads, or an error."""

    def __init__(self) -> None:
        self.reads = 0
        self.error: PgBeatError | None = None
        self.value = 0

    def __call__(self) -> int:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.value


def test_all_who_ask_within_the_same_seconds_get_one_read() -> None:
    source, found = Source(), []

    async def ask() -> None:
        shared = Shared(source, 60.0, anyio.CapacityLimiter(4))

        async def one() -> None:
            found.append(await shared.get())

        async with anyio.create_task_group() as viewers:
            for _ in range(20):
                viewers.start_soon(one)

    anyio.run(ask)

    assert (1, [0] * 20) == (source.reads, found)


def test_an_error_is_read_once_too_and_is_over_when_the_database_is_back() -> None:
    source = Source()
    source.error = DatabaseUnavailable("away")

    async def ask() -> int:
        shared = Shared(source, 0.0, anyio.CapacityLimiter(4))
        with pytest.raises(DatabaseUnavailable):
            await shared.get()
        source.error = None
        return await shared.get()

    assert 0 == anyio.run(ask)


def test_a_stream_sends_what_has_changed_and_nothing_else() -> None:
    source = Source()

    async def look() -> list[str]:
        shared = Shared(source, 0.0, anyio.CapacityLimiter(4))
        stream = events(
            shared.get, lambda n: {"same": "x", "number": str(n)}, str, Pace(0.0, 60.0, 60.0), lambda: False
        )
        told = [await anext(stream), await anext(stream)]
        source.value = 7
        told.append(await anext(stream))
        source.error = DatabaseUnavailable("away")
        told.append(await anext(stream))
        source.error = None
        told.append(await anext(stream))
        await stream.aclose()
        return told

    assert [
        "retry: 3000\n\n",
        'event: parts\ndata: {"same": "x", "number": "0"}\n\n',
        'event: parts\ndata: {"number": "7"}\n\n',
        'event: away\ndata: {"sentence": "away"}\n\n',
        'event: parts\ndata: {"same": "x", "number": "7"}\n\n',
    ] == anyio.run(look)


def test_a_stream_without_news_says_that_it_is_there_and_ends_after_its_time() -> None:
    async def look() -> list[str]:
        shared = Shared(Source(), 0.0, anyio.CapacityLimiter(4))
        stream = events(shared.get, lambda n: {"number": str(n)}, str, Pace(0.01, 0.2, 0.0), lambda: False)
        return [told async for told in stream]

    told = anyio.run(look)

    assert ": here\n\n" in told
    assert 2 == sum(not one.startswith(":") for one in told)


def test_the_open_page_gets_each_part_that_has_changed(well: Situation, migrated_database: str) -> None:
    well.plan()
    stream = data_of(Visitor(dashboard(migrated_database, pace=FAST)))

    first = next(stream)
    well.job("running", since=ago(minutes=1))
    changed: dict[str, str] = {}
    for name, parts in stream:
        assert "parts" == name
        changed |= parts
        if "running" in parts:
            break

    assert ("parts", True) == (first[0], {"verdict", "figures", "charts", "late", "next"} <= set(first[1]))
    assert "1m00s" in changed["running"]
    assert "verdict" not in changed


def test_the_parts_are_those_of_the_page(well: Situation, migrated_database: str) -> None:
    well.plan(NOON)
    visitor = Visitor(dashboard(migrated_database))
    ids = {given.get("id") for tag, given in visitor.open("/").tags if tag == "section"}

    _, parts = next(data_of(visitor))

    assert ids | {"asof"} == set(parts)
