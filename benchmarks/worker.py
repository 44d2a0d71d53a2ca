"""Workers: no-op tasks a second through a real worker, with the tracking of our jobs and as plain Celery messages.

What counts is how fast the full queue shrinks between its first and its last tenth, so neither the start of the worker
nor what it holds in advance is in it. With tracking each task is one start in Postgres, which it waits for, and one of
the finishes that the worker writes together; "reported late" is how long after the last task was taken its end stood
there. "Starts and finishes alone" is what as many connections can do that run nothing and write each start by itself
and the ends of ten jobs together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis
from celery import Celery

from benchmarks.finisher import finishers
from benchmarks.ground import QUEUE, Ground, execute, length_of, wait_for
from benchmarks.results import Figure
from benchmarks.rows import announce_worker, far, insert, set_due, soon
from celery_pgbeat.embedded import Server
from tests.harness.processes import Cluster

APP = "benchmarks.noop_app"
TASK = "benchmark.noop"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--pool", choices=("prefork", "threads", "solo"), default="prefork")
    parser.add_argument("--repeats", type=int, default=5)


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure all three in turn."""
    tracked, late, plain, alone = [], [], [], []
    for _ in range(options.repeats):
        rate, lag = tracked_rate(ground, options.tasks, options.concurrency, options.pool)
        tracked.append(rate)
        late.append(lag)
        plain.append(_plain(ground, options))
        alone.append(finished_alone(ground, options.tasks, options.concurrency))
    case = f"{options.pool}, {options.concurrency} at once"
    without = Figure(f"tasks without tracking, {case}", "tasks/s", plain)
    limit = Figure(f"starts and finishes alone, {options.concurrency} connections", "tasks/s", alone)
    ours = Figure(f"tasks with tracking, {case}", "tasks/s", tracked)
    ours.beside("those without", without).beside("starts and finishes alone", limit)
    return [ours, without, limit, Figure(f"reported late, {case}", "s", late)]


@contextmanager
def _jobs(ground: Ground, tasks: int, add_beside: Callable[[str], None] | None = None) -> Iterator[Cluster]:
    """Let a beat fill the queue with jobs of ours, and yield the servers for the measure."""
    server = ground.valkey
    with ground.database() as database:
        announce_worker(database)
        insert(database, tasks, "every 365d", far(10), TASK)
        ground.empty("redis")
        with ground.cluster(database, server.url) as cluster:
            beat = cluster.beat()
            set_due(database, soon(0, 1))
            wait_for(length_of(server.url), tasks, 120)
            time.sleep(1)  # for the last confirm
            beat.stop()
            if add_beside is not None:
                add_beside(database)
            execute(database, "vacuum analyze pgbeat.active_job")
            yield cluster


def tracked_rate(ground: Ground, tasks: int, concurrency: int, pool: str = "prefork") -> tuple[float, float]:
    """Have a worker do jobs; return the rate, and how long after the last one was taken its end was written."""
    with _jobs(ground, tasks) as cluster:
        _start(cluster, concurrency, pool)
        rate = _emptied(length_of(cluster.broker), tasks)
        emptied = time.time()
        while not _all_succeeded(cluster.database, tasks):
            assert time.time() < emptied + 60, "not all tasks were reported"
            time.sleep(0.02)
        return rate, time.time() - emptied


def finished_alone(
    ground: Ground, tasks: int, connections: int, add_beside: Callable[[str], None] | None = None
) -> float:
    """Return how many jobs a second the statements of a worker start and finish, beside what is added."""
    with (
        _jobs(ground, tasks, add_beside) as cluster,
        finishers(connections, cluster.database, cluster.broker, QUEUE),
    ):
        return _emptied(length_of(cluster.broker), tasks)


def _start(cluster: Cluster, concurrency: int, pool: str) -> None:
    cluster.worker(
        app=APP,
        queues=QUEUE,
        concurrency=concurrency,
        pool=pool,
        wait=False,
        arguments=["--loglevel", "WARNING"],
    )


def _all_succeeded(database: str, tasks: int) -> bool:
    ((count,),) = execute(database, "select count(*) from pgbeat.finished_job where state = 'succeeded'")
    return bool(count == tasks)


def _plain(ground: Ground, options: argparse.Namespace) -> float:
    """Fill the queue with plain messages, then have the same worker without our part empty it."""
    server = ground.valkey
    with ground.database() as database:
        ground.empty("redis")
        _fill(server, options.tasks)
        with ground.cluster(database, server.url, imports=[], pgbeat_url=None) as cluster:
            _start(cluster, options.concurrency, options.pool)
            return _emptied(length_of(server.url), options.tasks)


def _fill(server: Server, tasks: int) -> None:
    """Have Celery make each message; what it writes is what it would always write."""
    with Celery("plain", broker=server.url, set_as_current=False) as app, app.producer_pool.acquire() as producer:
        for number in range(tasks):
            app.send_task(TASK, args=[f"row {number}"], queue=QUEUE, producer=producer)
    assert redis.Redis.from_url(server.url).llen(QUEUE) == tasks


def _emptied(length: Callable[[], int], tasks: int) -> float:
    """Wait until the queue is empty; return the tasks a second between the first and the last tenth."""
    seen = []
    for least in (tasks * 9 // 10, tasks // 10, 0):
        until = time.monotonic() + 120
        while (left := length()) > least:
            assert time.monotonic() < until, "the worker does not empty the queue"
            time.sleep(0.005)
        seen.append((time.time(), left))
    (begun, most), (ended, least), _ = seen
    return (most - least) / (ended - begun)
