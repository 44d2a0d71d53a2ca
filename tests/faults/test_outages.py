"""Servers go away and come back: no process ends, nothing starts twice, and what was due is dealt with."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from celery_pgbeat.embedded import Postgres, Server
from tests.faults.conftest import Proof
from tests.faults.lengths import AWAY, FULL, LEASE, MARKS, SECONDS, part, within
from tests.faults.load import INBOX, PATIENCE, SECOND, Load, beats, now, paced, tapped, wait_until
from tests.harness.account import Limits, prove
from tests.harness.databases import migrate_database
from tests.harness.processes import Cluster, Node
from tests.harness.rows import jobs, sql
from tests.harness.tap import Tap
from tests.harness.wait import eventually

pytestmark = MARKS

BACK = within(5)  # seconds in which beats must work again
ROWS = 20


# What was in the air may come twice, each time: a round of the rows, or a small part.
IN_THE_AIR = Limits(doubled_sends=0.05, forgiven=ROWS)
ALIVE = "select 1 from pgbeat.node where role = 'beat' and last_seen_at > now() - interval '30 s'"


def works_again(tap: Tap, back_at: datetime) -> float:
    """Wait for the first message of an occurrence after an outage; return the seconds since its end."""

    def fresh() -> list[Any]:
        return [arrival for arrival in list(tap.arrivals) if (arrival.scheduled_for or back_at) > back_at]

    first = eventually(fresh, BACK + 5, "the first message after the outage")[0]
    return float((first.seen_at - back_at).total_seconds())


def test_a_postgres_that_is_restarted_at_once_is_waited_out(
    cluster: Cluster, own_postgres: Postgres, proven: Proof, note: Callable[[str], None]
) -> None:
    cluster.database = own_postgres.url
    cluster.settings = {"pgbeat_lease": LEASE}
    migrate_database(own_postgres.url)
    nodes = [*beats(cluster, 2), cluster.worker()]
    took = []
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        for number in range(part(10, least=2)):
            load.runs_for(2 * number + 1)
            own_postgres.restart("immediate")
            took.append(works_again(tap, now(cluster.database)))
        account = load.settle(tap, started=True)

    note(f"back within {max(took):.1f} s")
    proven(account, IN_THE_AIR)
    assert max(took) < BACK
    assert all(node.is_running() for node in nodes)


def test_connections_that_are_terminated_each_second_are_opened_again(cluster: Cluster, proven: Proof) -> None:
    cluster.settings = {"pgbeat_lease": LEASE}
    nodes = [*beats(cluster, 2), cluster.worker()]
    others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        load.runs_for(0)
        for _ in paced(max(AWAY / 2, 5), every=1):
            sql(cluster.database, f"select pg_terminate_backend(pid) {others}")
        works_again(tap, now(cluster.database))
        account = load.settle(tap, started=True)

    proven(account, IN_THE_AIR)
    assert all(node.is_running() for node in nodes)


# What befalls the broker, and for how long; either way it is killed in the end, and comes back.
BLOWS = {"down": (Server.kill, AWAY), "frozen": (Server.freeze, max(AWAY / 2, 6))}
AWAYS = [
    pytest.param(kind, blow, marks=[pytest.mark.amqp] if kind == "amqp" else [])
    for kind, blow in product(("redis", "amqp"), BLOWS)
    # A Redis that is down is in tests/acceptance/test_outages.py, a RabbitMQ that hangs is below.
    if SECONDS >= FULL or (kind, blow) in {("redis", "frozen"), ("amqp", "down")}
]
OUTAGE = {"pgbeat_lease": 1, "pgbeat_poll": 0.5, "pgbeat_heartbeat": 1}
ON_TIME = 2 * 1.5 * SECOND  # 2 x (lease + poll): what is older is for `catchup`


def survive(cluster: Cluster, server: Server, blow: str, beats: Sequence[Node]) -> datetime:
    """Have a blow, during which all beats must live, as `health` judges that too; return when it was over."""
    strike, seconds = BLOWS[blow]
    strike(server)
    began = now(cluster.database)
    wait_until(cluster.database, began + timedelta(seconds=seconds))
    assert all(beat.is_running() for beat in beats)
    assert len(beats) == len(sql(cluster.database, ALIVE))
    server.kill()
    server.start()
    return now(cluster.database)


def old_ones_sent(url: str, name: str, back_at: datetime) -> int:
    """Count what a row sent of the occurrences that were not on time any more when it was first decided again.

    Those are what that first decision sent, and what any later one should not have: older than `ON_TIME` before it, and
    a second more, for a mark may be taken that much before its decision is written.
    """
    decided = [job for job in jobs(url, name) if job["created_at"] > back_at]
    first = min(job["created_at"] for job in decided)
    sent = [job for job in decided if job["state"] != "skipped"]
    boundary = first - ON_TIME - SECOND
    return len([job for job in sent if job["created_at"] == first or job["scheduled_for"] < boundary])


@pytest.mark.parametrize(("own_broker", "blow"), AWAYS, indirect=["own_broker"])
def test_a_broker_that_is_away_is_waited_out_and_catchup_decides_about_missed_ticks(
    cluster: Cluster, own_broker: Server, blow: str, note: Callable[[str], None]
) -> None:
    cluster.broker = own_broker.url
    cluster.settings = OUTAGE
    running = beats(cluster, 2)
    with tapped(cluster, INBOX, onward="celery") as tap:
        inbox = f"'{INBOX}'"
        everything = Load(cluster, 10, name="all", queue=inbox, catchup="'all'")
        latest = Load(cluster, 10, name="latest", queue=inbox)
        latest.runs_for(2)
        with tap.shut():
            back_at = survive(cluster, own_broker, blow, running)
        accounts = {load: load.settle(tap, timeout=20) for load in (everything, latest)}
        cluster.worker()  # only now: Celery's own may end when its broker is killed
        eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), within(20), "all runs")

    runs = cluster.probe.runs()
    for load, account in accounts.items():
        accounts[load] = replace(account, started=[run for run in runs if run.periodic_task in load.names])
    note(f"all: {accounts[everything]}; latest: {accounts[latest]}")
    for account in accounts.values():
        prove(account, IN_THE_AIR)
    assert [] == accounts[everything].recorded
    assert dict.fromkeys(latest.names, 1) == {name: old_ones_sent(latest.url, name, back_at) for name in latest.names}


MINUTELY = """
    insert into pgbeat.periodic_task (name, task, schedule, args, anchor, start_at)
    select name, 'app.probe', 'every ' || %(every)s || 's', jsonb_build_array(name), %(first)s, %(first)s
    from (select 'row-' || to_char(number, 'FM0000') as name from generate_series(1, %(rows)s) as number) as named
"""
# Rows of which nothing that came due in the outage has been sent, in the end.
FORGOTTEN = """
    select task.name from pgbeat.periodic_task as task
    where not exists (
        select from pgbeat.job
        where periodic_task = task.name and scheduled_for between %(first)s and %(last)s and state <> 'skipped')
"""
# Occurrences that were skipped for a job that was dropped itself.
BLAMED = """
    select periodic_task from pgbeat.finished_job as job
    where reason = 'overlap' and blocked_by in (select id from pgbeat.finished_job where state = 'skipped')
"""
UNDECIDED = """
    select 1 from pgbeat.periodic_task where next_run_at <= pgbeat.now() or last_run_at is null
    union all
    select 1 from pgbeat.active_job where state = 'pending'
"""


def test_rows_that_came_due_while_the_broker_was_away_run_when_it_is_back(
    cluster: Cluster, own_redis: Server, note: Callable[[str], None]
) -> None:
    """One tick is submitted and cannot be sent, the next comes due: neither is dropped for the other's sake."""
    cluster.broker = own_redis.url
    cluster.settings = OUTAGE
    rows, every = part(6000, least=600), max(AWAY, 12)
    running = beats(cluster, 3)
    first = now(cluster.database).replace(microsecond=0) + 4 * SECOND
    sql(cluster.database, MINUTELY, every=str(int(every)), first=first, rows=rows)

    wait_until(cluster.database, first - SECOND / 2)
    own_redis.freeze()
    wait_until(cluster.database, first + timedelta(seconds=every * 5 / 3))
    own_redis.resume()
    last = first + timedelta(seconds=int(every))
    eventually(lambda: not sql(cluster.database, UNDECIDED), PATIENCE, "all is decided and sent")

    unsent = sql(cluster.database, "select count(*) from pgbeat.job where reason = 'too_late'")[0]["count"]
    forgotten = sql(cluster.database, FORGOTTEN, first=first, last=last)
    note(f"{rows} rows, {unsent} unsent jobs dropped for the next tick, {len(forgotten)} rows forgotten")
    assert unsent > 0
    assert [] == forgotten
    assert [] == sql(cluster.database, BLAMED)
    assert all(beat.is_running() for beat in running)


FROZEN = 12.0  # seconds: longer than any time-out that a beat has for a broker, so that one runs out under each of them
DEAD_AFTER = timedelta(seconds=6)  # half of how long the broker hangs
LIVELY = {
    "pgbeat_lease": 2,
    "pgbeat_poll": 0.5,
    "pgbeat_heartbeat": 1,
    "pgbeat_dead_after": DEAD_AFTER.total_seconds(),
    "pgbeat_alert_after": 3600,
}


class Pulse:
    """The signs of life that each beat of a cluster has given, as its peers could see them."""

    def __init__(self) -> None:
        self.seen: dict[str, set[datetime]] = defaultdict(set)
        self.longest: dict[str, timedelta] = defaultdict(timedelta)  # that a sign was old when it was looked at
        self.fewest = 1_000_000  # beats at one look

    def look(self, url: str) -> None:
        """Look once."""
        nodes = sql(url, "select id, last_seen_at, clock_timestamp() - last_seen_at as age from pgbeat.node")
        for node in nodes:
            self.seen[node["id"]].add(node["last_seen_at"])
            self.longest[node["id"]] = max(self.longest[node["id"]], node["age"])
        self.fewest = min(self.fewest, len(nodes))


@contextmanager
def felt(url: str) -> Iterator[Pulse]:
    """Look at the signs of life twenty times a second."""
    pulse, ended = Pulse(), threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            pulse.look(url)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield pulse
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("own_broker", ["redis", pytest.param("amqp", marks=pytest.mark.amqp)], indirect=True)
def test_a_broker_that_hangs_stops_neither_heartbeats_nor_work_that_needs_no_broker(
    cluster: Cluster, own_broker: Server, note: Callable[[str], None]
) -> None:
    cluster.broker = own_broker.url
    cluster.settings = LIVELY
    running = beats(cluster, 3)
    with tapped(cluster, INBOX, onward="celery") as tap:
        # Many are due all the time, so that each beat has a batch under way and another one that waits behind it.
        load = Load(cluster, ROWS, queue=f"'{INBOX}'", catchup="'all'")
        load.runs_for(3)
        with tap.shut(), felt(load.url) as pulse:
            own_broker.freeze()
            began = now(load.url)
            wait_until(load.url, began + timedelta(seconds=1))
            sql(load.url, "insert into pgbeat.periodic_task (name, task, schedule) values ('new', 't', 'every 1h')")
            planned = "select 1 from pgbeat.periodic_task where name = 'new' and next_run_at is not null"
            eventually(lambda: sql(load.url, planned), within(2), "a new row is planned while the broker hangs")
            wait_until(load.url, began + timedelta(seconds=FROZEN))
            own_broker.resume()
            wait_until(load.url, began + timedelta(seconds=FROZEN + 3))
        account = load.settle(tap, timeout=30)
        cluster.worker()
        eventually(lambda: not sql(load.url, "select 1 from pgbeat.active_job"), within(20), "all runs")

    account = replace(account, started=[run for run in cluster.probe.runs() if run.periodic_task in load.names])
    longest = max(pulse.longest.values())
    note(f"longest without a sign of life {longest.total_seconds():.1f} s; {account}")
    prove(account, Limits(doubled_sends=0.05, forgiven=len(load.names)))
    assert [] == account.recorded
    assert 3 == len(pulse.seen) == pulse.fewest
    assert longest < DEAD_AFTER
    assert all(len(signs) > FROZEN / 2 for signs in pulse.seen.values())
    assert all(beat.is_running() and "A beat is dead" not in beat.log for beat in running)
