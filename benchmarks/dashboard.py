"""The dashboard: how long its pages take beside many tasks and jobs, and what viewers who leave it open cost.

The time of a page is that of the whole answer on one connection, one page after the other. Viewers keep the first page
open as a browser does: they listen for its updates, and connect again when a stream ends. Statements are the lines of
Postgres' own log of statements, which the connections of the dashboard switch on.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.ground import Ground, cpu_of, execute
from benchmarks.results import Figure
from benchmarks.rows import announce_worker, far, insert
from celery_pgbeat.embedded import Process
from tests.harness.usage import memory
from tests.harness.wait import eventually

DAYS = 10  # over which the jobs are spread
# Of a hundred jobs three failed and five were skipped; a job took up to a minute.
JOBS = """
insert into pgbeat.finished_job (id, periodic_task, scheduled_for, due_at, origin, state, reason, task, created_at,
    sent_at, started_at, finished_at, run, sends, worker, error, group_name)
select gen_random_uuid(), 'row-' || 1 + n %% %s, at, at, 'schedule',
    case when n %% 100 < 3 then 'failed' when n %% 100 < 8 then 'skipped' else 'succeeded' end,
    case when n %% 100 between 3 and 7 then 'overlap' end, 'app.probe', at, at, at + interval '20 ms',
    at + n %% 60 * interval '1 s', 1, 1, 'worker-1', case when n %% 100 < 3 then 'ValueError: no such shop' end, null
from generate_series(%s, %s) as n
cross join lateral (select now() - n * (interval '1 day' * %s / %s) as at) as decided
"""
BATCH = 1_000_000  # jobs that one statement writes
PAGES = {
    "Now": "/",
    "Tasks": "/tasks",
    "Tasks, by next run": "/tasks?sort=next",
    "Tasks, a search that finds one": "/tasks?q=row-777777",
    "one task": "/task?name=row-7",
    "Jobs": "/jobs",
    "Jobs, failed": "/jobs?state=failed",
    "Timeline": "/timeline",
    "Groups": "/groups",
    "Nodes": "/nodes",
    "Problems": "/problems",
}
STATEMENT = re.compile(r"LOG:  (?:statement|execute)")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this measure's options."""
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--reads", type=int, default=20, help="of each page")
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--window", type=float, default=600.0, help="seconds that the viewers look")


def run(ground: Ground, options: argparse.Namespace) -> list[Figure]:
    """Measure the pages, then the viewers."""
    case = f"{options.tasks:,} tasks, {options.jobs:,} jobs"
    with ground.database() as database:
        fill(database, options.tasks, options.jobs)
        ground.empty("redis")
        with ground.cluster(database, ground.valkey.url) as cluster, _served(ground, database) as (process, address):
            cluster.beat()
            pages = {name: _reads(address, path, options.reads) for name, path in PAGES.items()}
            viewed = _viewed(ground, process, address, options)
    return [
        *(Figure(f"{name}, {case}", "ms", times) for name, times in pages.items()),
        *(Figure(f"{name}, {options.viewers} viewers, {case}", unit, [value]) for name, unit, value in viewed),
    ]


def fill(database: str, tasks: int, jobs: int) -> None:
    """Add the periodic tasks and the history."""
    announce_worker(database)
    insert(database, tasks, "0 0 1 1 *", far(60))
    for first in range(0, jobs, BATCH):
        execute(database, JOBS, [tasks, first, min(first + BATCH, jobs) - 1, DAYS, jobs])
    execute(database, "vacuum analyze")
    execute(database, "checkpoint")


@contextmanager
def _served(ground: Ground, database: str) -> Iterator[tuple[Process, str]]:
    folder = ground.place()
    log = folder / "web.log"
    command = [sys.executable, "-u", "-c", "from celery_pgbeat.cli import main; main()", "web", "--port", "0"]
    logged = f"{database}?options=-clog_statement%3Dall"
    process = Process(command, log=log, env={**os.environ, "PGBEAT_URL": logged}, cwd=folder)
    try:
        found = eventually(lambda: re.search(r"http://\S+", log.read_text() if log.exists() else ""), 30, "no address")
        yield process, found[0]
    finally:
        process.close()


def _reads(address: str, path: str, count: int) -> list[float]:
    """Return the milliseconds of each read of a page, without the first one."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=60)
    times = []
    for _ in range(count + 1):
        begun = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        times.append((time.perf_counter() - begun) * 1000)
        assert answer.status == 200, f"{path}: {answer.status}"
    connection.close()
    return times[1:]


def _viewed(
    ground: Ground, process: Process, address: str, options: argparse.Namespace
) -> list[tuple[str, str, float]]:
    """Have viewers look at the first page; return what that cost."""
    over = threading.Event()
    viewers = [threading.Thread(target=_look, args=(address, over), daemon=True) for _ in range(options.viewers)]
    for viewer in viewers:
        viewer.start()
    time.sleep(min(30.0, options.window / 4))  # what the first minutes allocate is not a leak
    log = ground.postgres.log
    size, before, used = log.stat().st_size, memory(process.pid) / 1024, cpu_of(process.pid)
    begun = time.monotonic()
    time.sleep(options.window)
    duration = time.monotonic() - begun
    with log.open(encoding="utf-8", errors="replace") as file:
        file.seek(size)
        statements = sum(1 for line in file if STATEMENT.search(line))
    after, processor = memory(process.pid) / 1024, cpu_of(process.pid) - used
    over.set()
    return [
        ("statements", "1/s", statements / duration),
        ("processor of the dashboard", "% of a core", processor / duration * 100),
        ("memory of the dashboard (RSS), before", "MiB", before),
        ("memory of the dashboard (RSS), after", "MiB", after),
    ]


def _look(address: str, over: threading.Event) -> None:
    """Keep the first page open until it is over."""
    while not over.is_set():
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=60)
        try:
            connection.request("GET", "/events")
            answer = connection.getresponse()
            while answer.readline() and not over.is_set():
                pass
        finally:
            connection.close()
