"""The main process sees who has died in its pool: it speaks for nobody dead, and has Celery look."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from celery.worker import state

from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from celery_pgbeat.worker.message import ReceivedJobs
from celery_pgbeat.worker.pool_watch import PoolWatch, is_dead
from tests.harness.wait import eventually

REPORTS = cast(WorkerQueries, None)
Child = Callable[[], "subprocess.Popen[bytes]"]


class Request(SimpleNamespace):
    """One request that a pool process has accepted."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class House:
    """A worker's main process and its pool, with what was left to the thread of the consumer."""

    def __init__(self) -> None:
        self.soon: list[Any] = []
        self.received_jobs = ReceivedJobs()
        self.requests: list[Request] = []
        self.pool = SimpleNamespace(uses_semaphore=True, maintain_pool=object())
        self.consumer = SimpleNamespace(pool=self.pool, hub=object(), call_soon=self.soon.append)
        self.children = PoolWatch(self.received_jobs, self.consumer)

    def run(self, pid: int) -> Start:
        """Have a job run in a process."""
        start = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")
        self.requests.append(Request(worker_pid=pid))
        self.received_jobs.add(self.requests[-1], start)
        state.active_requests.add(self.requests[-1])
        return start


@pytest.fixture
def house() -> Iterator[House]:
    yield House()
    state.active_requests.clear()


@pytest.fixture
def child() -> Iterator[Child]:
    """Make a child that lives until it is killed."""
    made = []

    def make() -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen(["sleep", "60"]))
        return made[-1]

    yield make
    for process in made:
        process.kill()
        process.wait()


def killed(process: subprocess.Popen[bytes]) -> int:
    """Kill a child, and wait until the kernel can tell, not until anybody has been told."""
    process.kill()
    eventually(lambda: is_dead(process.pid), 10, "its death")
    return process.pid


def test_a_dead_child_is_seen_and_left_to_who_waits_for_it(child: Child) -> None:
    process = child()
    assert not is_dead(process.pid)
    assert is_dead(killed(process))
    assert (process.pid, 9) == os.waitpid(process.pid, 0)
    assert is_dead(process.pid)


def test_nobody_speaks_for_a_start_whose_process_is_dead(house: House, child: Child) -> None:
    alive = house.run(child().pid)
    dead = house.run(killed(child()))
    assert [alive] == house.children.living()
    assert {alive, dead} == set(house.received_jobs.running())


def test_celery_is_told_to_look_for_its_dead_and_only_then(house: House, child: Child) -> None:
    house.children.run(REPORTS)
    process = child()
    house.run(process.pid)
    house.children.run(REPORTS)
    assert [] == house.soon
    killed(process)
    house.children.run(REPORTS)
    assert [house.pool.maintain_pool] == house.soon
    state.active_requests.clear()
    house.children.run(REPORTS)
    assert 1 == len(house.soon)


def test_a_pool_that_looks_by_itself_is_left_alone_and_nobody_speaks_for_its_dead(house: House, child: Child) -> None:
    house.consumer.hub = None
    house.run(killed(child()))
    house.children.run(REPORTS)
    assert [] == house.soon
    assert [] == house.children.living()


def test_what_a_pool_without_processes_calls_a_process_is_none(house: House) -> None:
    house.pool.uses_semaphore = False
    start = house.run(id(house))  # as the greenlets' pools number them
    house.children.run(REPORTS)
    assert [] == house.soon
    assert [start] == house.children.living()
