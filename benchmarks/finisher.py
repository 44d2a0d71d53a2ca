"""Processes that run the statements of a worker, a start for each job and their ends together, and no tasks."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import redis

from benchmarks.consumer import headers, take
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import Finish, Start, WorkerQueries

AT_ONCE = 10  # jobs that a finisher takes in one go, and whose ends it writes together
SILENCE = timedelta(minutes=1)  # that a start may go without a heartbeat


@contextmanager
def finishers(count: int, database: str, broker: str, queue: str) -> Iterator[None]:
    """Let this many processes finish the jobs of a queue."""
    context = multiprocessing.get_context("spawn")
    started = [
        context.Process(target=finish, args=(database, broker, queue, number), daemon=True) for number in range(count)
    ]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.terminate()
            process.join()


def finish(database: str, broker: str, queue: str, number: int) -> None:
    """Be one of them, until the end of the process."""
    client = redis.Redis.from_url(broker)
    reports = WorkerQueries(Database(database))
    while True:
        copies = [
            Start(uuid.UUID(headers(raw)["id"]), 0, 0, uuid.uuid4(), f"finisher-{number}")
            for raw in take(client, queue, AT_ONCE)
        ]
        reports.finish_many([Finish(copy, "succeeded") for copy in copies if reports.start(copy, SILENCE)])
