"""The lean tick: the smallest honest tick, a limit that does not move with our statements.

The same order of steps as a beat's (mark, plan in Python, submit if no job of the name is open, one write to the
broker, confirm) on two lean tables of its own, on the same durable Postgres. What it leaves out is what a product adds:
catch-up, windows, groups, limits, recovery, notifications, a history. Nothing of ours is used.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from multiprocessing.connection import Connection

import psycopg2
import psycopg2.extras
import redis

from benchmarks.ground import QUEUE, Ground, execute, length_of, wait_for
from benchmarks.rows import far, soon

BATCH = 1000  # rows, as `pgbeat_batch`
HEADSTART = 3.0  # seconds for the processes to start
TABLES = """
create table task (
    id bigint primary key, name text not null, task text not null, args text not null default '[]',
    kwargs text not null default '{}', period interval not null, next_run_at timestamptz not null,
    marked_by text, marked_until timestamptz
) with (fillfactor = 50);
create index on task (next_run_at);
create table job (
    id uuid primary key, name text not null, task_id bigint not null, scheduled_for timestamptz not null,
    state smallint not null, created_at timestamptz not null default now(), busy_until timestamptz
) with (fillfactor = 50);
create unique index on job (name) where state < 3;
"""
MARK = """
update task set marked_by = %(process)s, marked_until = clock_timestamp() + interval '15 s'
where id = any (array(
    select id from task
    where next_run_at <= clock_timestamp() and (marked_until is null or marked_until < clock_timestamp())
    order by next_run_at
    limit %(batch)s
    for update skip locked))
returning id, name, task, args, kwargs, period, next_run_at
"""
SUBMIT = """
with decided as (
    select * from unnest(%(ids)s::bigint[], %(jobs)s::uuid[], %(instants)s::timestamptz[], %(next_runs)s::timestamptz[])
        as decided (id, job, instant, next_run_at)
),
fenced as (
    update task set next_run_at = decided.next_run_at, marked_by = null, marked_until = null
    from decided
    where task.id = any (%(ids)s::bigint[]) and task.id = decided.id and task.marked_by = %(process)s
    returning task.id, task.name, decided.job, decided.instant
)
insert into job (id, name, task_id, scheduled_for, state, busy_until)
select job, name, id, instant, 0, clock_timestamp() + interval '1 day' from fenced
on conflict do nothing
returning id
"""
CONFIRM = "update job set state = 1 where id = any (%(jobs)s::uuid[])"
# A limit at any size: otherwise the planner has the submit of 1,000 rows read all 100,000 of the table.
BY_INDEX = "set enable_seqscan = off; set enable_mergejoin = off"
MESSAGE = (
    '{"body": "W1tdLCB7fSwgeyJjYWxsYmFja3MiOiBudWxsLCAiZXJyYmFja3MiOiBudWxsLCAiY2hhaW4iOiBudWxsLCAiY2hvcmQiOiBudWxsfV0='
    '", "content-encoding": "utf-8", "content-type": "application/json", "headers": {"lang": "py", "task": "%s", "id": '
    '"%s", "shadow": null, "eta": null, "expires": null, "group": null, "group_index": null, "retries": 0, "timelimit":'
    ' [null, null], "root_id": "%s", "parent_id": null, "argsrepr": "()", "kwargsrepr": "{}", "origin": "gen1@host", '
    '"periodic_task_name": "%s"}, "properties": {"correlation_id": "%s", "delivery_mode": 2, "delivery_info": '
    '{"exchange": "", "routing_key": "q"}, "priority": 0, "body_encoding": "base64", "delivery_tag": "%s"}}'
)


def lean(ground: Ground, rows: int, processes: int = 1, rounds: int = 1) -> list[float]:
    """Return the messages a second of each round, from the instant until the last lies at the broker (Redis)."""
    rates = []
    with ground.database(migrated=False) as database:
        execute(database, TABLES)
        execute(
            database,
            "insert into task (id, name, task, period, next_run_at)"
            " select n, 'row-' || n, 'app.probe', '365 days', %s from generate_series(1, %s) as n",
            [far(10), rows],
        )
        length = length_of(ground.valkey.url)
        for _ in range(rounds):
            ground.empty("redis")
            execute(database, "truncate job")
            due = soon(HEADSTART + rows / 50_000, 1)
            execute(database, "update task set next_run_at = %s, marked_until = null", [due])
            execute(database, "vacuum analyze task")
            execute(database, "checkpoint")
            with _driven(processes, database, ground.valkey.url, due):
                done = wait_for(length, rows, 30 + rows / 1000)
            rates.append(rows / (done - due.timestamp()))
        ground.empty("redis")
    return rates


@contextmanager
def _driven(processes: int, database: str, broker: str, due: datetime) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    started = [
        context.Process(target=drive, args=(database, broker, due, theirs), daemon=True) for _ in range(processes)
    ]
    for process in started:
        process.start()
    for _ in started:
        ours.recv()
    assert time.time() < due.timestamp(), "the processes were not ready in time"
    yield
    for process in started:
        process.join()


def drive(database: str, broker: str, due: datetime, ready: Connection) -> None:
    """Be one process: get ready, wait for the instant, and go on until nothing is due."""
    psycopg2.extras.register_uuid()
    client = redis.Redis.from_url(broker)
    client.ping()
    process = f"lean-{os.getpid()}"
    with closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(BY_INDEX)
        ready.send(None)
        time.sleep(max(0.0, due.timestamp() - time.time()))
        while (marked := _marked(cursor, process)) or time.time() < due.timestamp() + 0.2:
            if marked:
                _send(cursor, client, process, marked)


def _marked(cursor: psycopg2.extensions.cursor, process: str) -> list[tuple[object, ...]]:
    cursor.execute(MARK, {"process": process, "batch": BATCH})
    return cursor.fetchall()


def _send(
    cursor: psycopg2.extensions.cursor, client: redis.Redis, process: str, marked: list[tuple[object, ...]]
) -> None:
    """Plan, submit, write and confirm one batch."""
    decided: dict[str, list[object]] = {"ids": [], "jobs": [], "instants": [], "next_runs": []}
    rows = {}
    for number, name, task, _args, _kwargs, period, instant in marked:
        assert isinstance(instant, datetime)
        assert isinstance(period, timedelta)
        job = uuid.uuid4()
        rows[job] = (name, task)
        for column, value in zip(decided.values(), (number, job, instant, instant + period), strict=True):
            column.append(value)
    cursor.execute(SUBMIT, {**decided, "process": process})
    made = [job for (job,) in cursor.fetchall()]
    messages = []
    for job in made:
        (name, task), shown = rows[job], str(job)
        messages.append(MESSAGE % (task, shown, shown, name, shown, shown))
    if messages:
        client.lpush(QUEUE, *messages)
        cursor.execute(CONFIRM, {"jobs": made})
