"""The main process detects dead pool processes: it sends no heartbeat for them, and makes Celery check."""

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
from celery_pgbeat.worker.report.pool_watch import PoolWatch, is_dead
from celery_pgbeat.worker.start.message import ReceivedJobs
from tests.harness.wait import eventually

QUERIES = cast(WorkerQueries, None)
Child = Callable[[], "subprocess.Popen[bytes]"]


class Request(SimpleNamespace):
    """One request that a pool process has accepted."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class MainProcess:
    """A worker's main process and its pool, and the calls that were left to the thread of the consumer."""

    def __init__(self) -> None:
        self.soon: list[Any] = []
        self.received_jobs = ReceivedJobs()
        self.requests: list[Request] = []
        self.pool = SimpleNamespace(uses_semaphore=True, maintain_pool=object())
        self.consumer = SimpleNamespace(pool=self.pool, hub=object(), call_soon=self.soon.append)
        self.pool_watch = PoolWatch(self.received_jobs, self.consumer)

    def run(self, pid: int) -> Start:
        """Have a job run in a process."""
        start = Start(uuid.uuid4(), 0, 0, uuid.uuid4(), "node")
        self.requests.append(Request(worker_pid=pid))
        self.received_jobs.add(self.requests[-1], start)
        state.active_requests.add(self.requests[-1])
        return start


@pytest.fixture
def main() -> Iterator[MainProcess]:
    yield MainProcess()
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
    """Kill a child, and wait until the kernel reports its death."""
    process.kill()
    eventually(lambda: is_dead(process.pid), 10, "its death")
    return process.pid


def test_a_dead_child_is_detected_but_not_reaped(child: Child) -> None:
    process = child()
    assert not is_dead(process.pid)
    assert is_dead(killed(process))
    assert (process.pid, 9) == os.waitpid(process.pid, 0)
    assert is_dead(process.pid)


def test_a_start_whose_process_is_dead_gets_no_heartbeat(main: MainProcess, child: Child) -> None:
    alive = main.run(child().pid)
    dead = main.run(killed(child()))
    assert [alive] == main.pool_watch.living()
    assert {alive, dead} == set(main.received_jobs.running())


def test_a_start_that_celery_has_cancelled_gets_heartbeats_until_its_process_has_died(
    main: MainProcess, child: Child
) -> None:
    process = child()
    cancelled = main.run(process.pid)
    state.active_requests.clear()
    assert [] == main.pool_watch.living()
    main.requests[0]._already_cancelled = True
    assert [cancelled] == main.pool_watch.living()
    killed(process)
    assert [] == main.pool_watch.living()


def test_celery_maintains_its_pool_when_a_process_has_died_and_only_then(main: MainProcess, child: Child) -> None:
    main.pool_watch.run(QUERIES)
    process = child()
    main.run(process.pid)
    main.pool_watch.run(QUERIES)
    assert [] == main.soon
    killed(process)
    main.pool_watch.run(QUERIES)
    assert [main.pool.maintain_pool] == main.soon
    state.active_requests.clear()
    main.pool_watch.run(QUERIES)
    assert 1 == len(main.soon)


def test_a_pool_with_a_supervisor_is_not_maintained_and_its_dead_get_no_heartbeat(
    main: MainProcess, child: Child
) -> None:
    main.consumer.hub = None
    main.run(killed(child()))
    main.pool_watch.run(QUERIES)
    assert [] == main.soon
    assert [] == main.pool_watch.living()


def test_the_pid_of_a_pool_without_processes_is_not_a_process(main: MainProcess) -> None:
    main.pool.uses_semaphore = False
    start = main.run(id(main))  # as pools of greenlets number them
    main.pool_watch.run(QUERIES)
    assert [] == main.soon
    assert [start] == main.pool_watch.living()
