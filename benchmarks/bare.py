"""The bare limit: the same three statements and the same bytes as a beat's, without its planning and rendering.

Mark, submit and confirm go through the store; what is decided is a constant, the ids are there beforehand. The
messages are one rendered message again and again, a whole batch in one write: one LPUSH, or one write of frames and
the answer to each awaited. Each process drives its own batches one after the other; nothing overlaps within it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from multiprocessing.connection import Connection

from benchmarks.ground import Ground, length_of, wait_for
from benchmarks.messages import Ways, jobs
from benchmarks.rows import announce_worker, far, insert, set_due, soon
from celery_pgbeat.beat.send.rendering.renderer import MessageBatch
from celery_pgbeat.planning import Decision, Due
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database

LEASE = timedelta(seconds=15)
HEADSTART = 6.0  # seconds for the processes to start; they make their ids then
BATCH = 1000  # rows, as `pgbeat_batch`


def bare(ground: Ground, rows: int, processes: int = 1, broker: str = "redis", rounds: int = 1) -> list[float]:
    """Return the messages a second of each round."""
    server = ground.broker(broker)
    rates = []
    with ground.database() as database:
        announce_worker(database)
        planning = insert(database, rows, "every 365d", far(10))
        length = length_of(server.url)
        for _ in range(rounds):
            ground.empty(broker)
            due = soon(HEADSTART + planning + rows / 100_000, 1)
            set_due(database, due)
            with _driven(processes, database, server.url, due, rows):
                done = wait_for(length, rows, 30 + rows / 1000)
            rates.append(rows / (done - due.timestamp()))
        ground.empty(broker)
    return rates


@contextmanager
def _driven(processes: int, database: str, broker: str, due: datetime, rows: int) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    started = [
        context.Process(target=drive, args=(database, broker, due, rows, theirs), daemon=True) for _ in range(processes)
    ]
    for process in started:
        process.start()
    for _ in started:
        ours.recv()
    assert datetime.now(timezone.utc) < due, "the processes were not ready in time"
    yield
    for process in started:
        process.join()


def drive(database: str, broker: str, due: datetime, rows: int, ready: Connection) -> None:
    """Be one process: get ready, wait for the instant, and go on until nothing is due."""
    store = BeatQueries(Database(database), f"bare-{os.getpid()}", LEASE)
    store.look()
    write = _writer(broker)
    ids = iter([uuid.uuid4() for _ in range(rows)])
    ready.send(None)
    time.sleep(max(0.0, due.timestamp() - time.time()))
    while (marked := store.mark(BATCH)) or time.time() < due.timestamp() + 0.1:
        if marked:
            decisions = [_decided(row, next(ids), due) for row in marked]
            store.submit(decisions, "UTC", True, True)
            write(len(decisions))
            store.confirm([(decision.job, 0.0) for decision in decisions if decision.job is not None])


def _decided(row: Due, job: uuid.UUID, due: datetime) -> Decision:
    return Decision(
        row=row,
        job=job,
        scheduled_for=due,
        due_at=due,
        origin="schedule",
        skipped=None,
        decided_until=due,
        next_run_at=due + timedelta(days=365),
        planned_for=due + timedelta(days=365),
        pickup_deadline=timedelta(days=1),
    )


def _writer(broker: str) -> Callable[[int], None]:
    (rendered,), _ = Ways(broker).renderer.render(jobs(10)[1:2] * 10, datetime.now(timezone.utc))

    def write(count: int) -> None:
        batch = MessageBatch(
            rendered.writer, rendered.place, messages=rendered.messages[:1] * count, taken=[None] * count
        )
        batch.send()
        assert all(batch.taken)

    return write
