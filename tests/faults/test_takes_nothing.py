"""A broker that answers and takes no message is away: rows wait, none is blamed, and everything that looks tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis

from celery_pgbeat.embedded import Server
from celery_pgbeat.embedded.ports import HOST
from tests.faults.lengths import AWAY, FULL, MARKS, SECONDS, within
from tests.faults.load import INBOX, Load, beats, now, tapped, wait_until
from tests.harness.account import Limits, prove
from tests.harness.processes import Beat, Cluster
from tests.harness.rows import sql
from tests.harness.wait import eventually

pytestmark = MARKS

ROWS = 20
WELL_AFTER = 20  # seconds: the longest pause between two probes, the wait for a row to try, and a cycle or two
OFTEN = {
    "pgbeat_lease": 2,
    "pgbeat_poll": 0.5,
    "pgbeat_heartbeat": 1,
    "pgbeat_dead_after": 3,
    "pgbeat_alert_after": 6,
}
PROBLEMS = "select broker_problem from pgbeat.node where broker_problem is not null"
DEAD = "select n_tup_upd + n_tup_del as dead from pg_stat_user_tables where relname = 'active_job'"
SENT = "select 1 from pgbeat.job where periodic_task = 'daily-0001' and state = 'untracked'"


@contextmanager
def of_redis(server: Server, begin: str, end: str) -> Iterator[None]:
    with redis.Redis.from_url(server.url) as client:
        client.execute_command(*begin.split())
        yield
        client.execute_command(*end.split())


@contextmanager
def forbidden(server: Any) -> Iterator[None]:
    server.control("set_permissions", "guest", ".*", "^$", ".*")
    server.control("close_all_connections", "a channel remembers for minutes what it was permitted")
    yield
    server.control("set_permissions", "guest", ".*", ".*", ".*")


@contextmanager
def full_queue(server: Any) -> Iterator[None]:
    server.management.limit(INBOX, 1)
    yield
    server.management.limit(INBOX, None)


@contextmanager
def no_memory(server: Any) -> Iterator[None]:
    server.control("set_vm_memory_high_watermark", "absolute", "1")
    yield
    server.control("set_vm_memory_high_watermark", "0.6")


REFUSALS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "full": ("redis", lambda server: of_redis(server, "config set maxmemory 1", "config set maxmemory 0")),
    "read-only": ("redis", lambda server: of_redis(server, f"replicaof {HOST} 1", "replicaof no one")),
    "forbidden": ("redis", lambda server: of_redis(server, "acl setuser default -lpush", "acl setuser default +@all")),
    "forbidden exchange": ("amqp", forbidden),
    "full queue": ("amqp", full_queue),
    "blocked": ("amqp", no_memory),
}
ALIKE = {"read-only", "forbidden"}  # to a beat the same as "full", as tests/unit/beat/test_publisher.py proves
EACH = [
    pytest.param(kind, refusal, id=name.replace(" ", "-"), marks=[pytest.mark.amqp] if kind == "amqp" else [])
    for name, (kind, refusal) in REFUSALS.items()
    if SECONDS >= FULL or name not in ALIKE
]


def lines_about_the_broker(running: list[Beat]) -> list[str]:
    words = ("The broker", "A cycle failed", "A batch failed", "was not sent")
    return [line for beat in running for line in beat.log.splitlines() if any(word in line for word in words)]


@pytest.mark.parametrize(("own_broker", "refusal"), EACH, indirect=["own_broker"])
def test_p10_a_broker_that_answers_and_takes_nothing_is_waited_out_and_seen(
    cluster: Cluster, own_broker: Server, refusal: Callable[[Any], Any], note: Callable[[str], None]
) -> None:
    cluster.broker = own_broker.url
    cluster.settings = OFTEN
    running = beats(cluster, 2)
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        # Not tracked: what is sent is done, and only what waits is overdue.
        Load(cluster, 1, name="daily", every=timedelta(days=1), queue=f"'{INBOX}'", tracking="'send'")
        load.runs_for(2)
        eventually(lambda: len(sql(load.url, SENT)) == 1, within(5), "the daily row is sent, under the beats' lease")
        with tap.shut(), refusal(own_broker):
            began, dead = now(load.url), sql(load.url, DEAD)[0]["dead"]
            # A RabbitMQ without memory still takes what a connection says first.
            eventually(lambda: len(sql(load.url, PROBLEMS)) == len(running), within(20), "each beat knows", every=0.2)
            sql(load.url, "update pgbeat.periodic_task set next_run_at = now() where name = 'daily-0001'")
            told: dict[str, timedelta] = {}

            def all_tell() -> bool:
                for door, query in DOORS.items():
                    if door not in told and sql(load.url, query):
                        told[door] = now(load.url) - began
                return len(told) == len(DOORS)

            eventually(all_tell, within(20), "the node, the view overdue and an alert tell it", every=0.2)
            seen = sql(load.url, PROBLEMS)
            wait_until(load.url, began + timedelta(seconds=max(AWAY, 10)))
            dead = sql(load.url, DEAD)[0]["dead"] - dead
            lines = lines_about_the_broker(running)
        back = now(load.url)
        eventually(lambda: not sql(load.url, PROBLEMS), within(WELL_AFTER), "the beats say that their broker is well")
        well = now(load.url) - back
        account = load.settle(tap, timeout=30)
        eventually(lambda: len(sql(load.url, SENT)) == 2, within(15), "the daily row is sent after the outage")
        lost = sql(load.url, "select periodic_task, error from pgbeat.job where state = 'lost'")

    after = [job for job in sql(load.url, "select * from pgbeat.job where state = 'sent'") if job["created_at"] > back]
    note(
        f"told after {', '.join(f'{door} {duration.total_seconds():.1f} s' for door, duration in told.items())}; "
        f"{dead} row versions, {len(lines)} lines: {seen[0]['broker_problem']}; "
        f"well after {well.total_seconds():.1f} s; {len(after)} sent after; {account}"
    )
    prove(replace(account, started=None), Limits(doubled_sends=0.05, forgiven=ROWS))
    assert [] == lost
    assert len(lines) <= 4 + SECONDS / 10, "\n".join(lines)
    assert dead < 40 * ROWS
    assert all(beat.is_running() for beat in running)


DOORS = {
    "node": PROBLEMS,
    "overdue": "select 1 from pgbeat.overdue where name = 'daily-0001' and reason ~ 'broker'",
    "alert": "select 1 from pgbeat.alert where kind = 'overdue' and name = 'daily-0001'",
}
