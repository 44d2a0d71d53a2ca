"""P10: a Postgres that is busy, full, read-only or short of connections: beats and workers stay up and lose nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from typing import Any

import psycopg2
import pytest

from tests.acceptance.decisions import decided, gaps
from tests.harness import checker
from tests.harness.processes import Cluster, Node
from tests.harness.role import Role
from tests.harness.rows import insert_many, jobs, sql
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)


@contextmanager
def with_setting(role: Role, setting: str, value: str) -> Iterator[None]:
    """Give the user a setting, which its next connections have, and take it away again."""
    role.set(setting, value)
    role.disconnect()
    yield
    role.reset()
    role.disconnect()


@contextmanager
def trigger(url: str, table: str, body: str) -> Iterator[None]:
    """Have each new or changed row of a table meet this."""
    sql(url, f"create function public.meet() returns trigger language plpgsql as $$ begin {body}; return new; end $$")
    sql(
        url,
        f"create trigger meet before insert or update on pgbeat.{table} for each row execute function public.meet()",
    )
    yield
    sql(url, f"drop trigger meet on pgbeat.{table}")
    sql(url, "drop function public.meet()")


@contextmanager
def no_connections(role: Role) -> Iterator[None]:
    role.limit(0)
    role.disconnect()
    yield
    role.reset()


@contextmanager
def full_disk(role: Role) -> Iterator[None]:
    full = "raise exception 'could not extend file: No space left on device' using errcode = '53100'"
    with trigger(role.owner_url, "active_job", full):
        yield


@contextmanager
def slow_rows(role: Role) -> Iterator[None]:
    with (
        trigger(role.owner_url, "active_job", "perform pg_sleep(0.3)"),
        with_setting(role, "statement_timeout", "200ms"),
    ):
        yield


@contextmanager
def held_table(role: Role) -> Iterator[None]:
    with with_setting(role, "lock_timeout", "100ms"), closing(psycopg2.connect(role.owner_url)) as holder:
        holder.cursor().execute("lock table pgbeat.active_job in access exclusive mode")
        yield


@contextmanager
def ended_connections(role: Role) -> Iterator[None]:
    role.disconnect()
    yield


TROUBLES: dict[str, Callable[[Role], Any]] = {
    "its connections are ended": ended_connections,
    "it is read-only": lambda role: with_setting(role, "default_transaction_read_only", "on"),
    "it takes no more connections": no_connections,
    "its disk is full": full_disk,
    "its statements outlast their time": slow_rows,
    "its locks outlast their time": held_table,
}


def clock(url: str) -> datetime:
    (row,) = sql(url, "select clock_timestamp() as at")
    at: datetime = row["at"]
    return at


def submitted_after(url: str, instant: datetime, count: int) -> bool:
    (row,) = sql(
        url,
        "select count(distinct periodic_task) as rows from pgbeat.job "
        "where sent_at > %(at)s and scheduled_for > %(at)s",
        at=instant,
    )
    return bool(row["rows"] == count)


def troubles_told(beat: Node) -> int:
    """How often a beat has logged a problem of Postgres, or of one statement."""
    return beat.log.count("Nothing is sent meanwhile.") + beat.log.count("It is tried again.")


def test_p10_each_trouble_of_postgres_is_waited_out(cluster: Cluster, role: Role) -> None:
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5}
    insert_many(cluster.database, 6)
    nodes: list[Node] = [
        cluster.beat(environment={"PGBEAT_URL": role.url("psycopg2")}),
        cluster.beat(environment={"PGBEAT_URL": role.url("psycopg")}),
        cluster.worker(environment={"PGBEAT_URL": role.url()}),
    ]
    eventually(lambda: len(cluster.probe.runs()) >= 6, 20, "a round")

    for trouble, meet in TROUBLES.items():
        noticed = [troubles_told(beat) for beat in nodes[:2]]
        with meet(role):
            eventually(
                lambda before=noticed: any(
                    troubles_told(beat) > count for beat, count in zip(nodes[:2], before, strict=True)
                ),
                20,
                f"a beat meets it: {trouble}",
            )
        over = clock(cluster.database)
        eventually(lambda at=over: submitted_after(cluster.database, at, 6), 15, f"all rows go out again: {trouble}")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), 60, "nothing is under way")

    runs = cluster.probe.runs()
    sent = [job for job in jobs(cluster.database) if job["state"] != "skipped"]
    assert all(node.is_running() for node in nodes)
    assert {1} == set(decided(cluster.database, SECOND).values())
    assert [] == gaps(cluster.database, SECOND)
    assert [] == checker.lost([(job["periodic_task"], job["scheduled_for"]) for job in sent], runs)
    assert [] == checker.doubled(runs)


def test_p10_serialization_errors_under_a_strict_isolation_level_delay_nothing_for_long(
    cluster: Cluster, role: Role
) -> None:
    """Beats and a worker meet each second; each of their statements may fail with a serialization error."""
    role.set("default_transaction_isolation", "serializable")
    insert_many(cluster.database, 20)
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5}
    nodes: list[Node] = [cluster.beat(environment={"PGBEAT_URL": role.url()}) for _ in range(2)]
    nodes.append(cluster.worker(environment={"PGBEAT_URL": role.url()}))
    failed = "could not serialize access"
    eventually(lambda: any(failed in node.log for node in nodes), 60, "two of them meet", every=0.5)
    eventually(lambda: len(cluster.probe.runs()) >= 120, 40, "six rounds")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), 60, "nothing is under way")

    runs = cluster.probe.runs()
    assert all(node.is_running() for node in nodes)
    assert [] == gaps(cluster.database, SECOND)
    assert [] == checker.doubled(runs)


@pytest.mark.parametrize("table", ["periodic_task", "active_job"])
def test_p10_a_batch_too_large_for_the_statement_timeout_is_made_smaller(
    cluster: Cluster, role: Role, table: str
) -> None:
    """Whether it is the mark that takes too long or the submit: all go out, and no lease has to end for that."""
    insert_many(cluster.database, 400, "every 1h")
    beat = cluster.beat()
    planned = "select count(*) = 400 as well from pgbeat.periodic_task where next_run_at is not null"
    eventually(lambda: sql(cluster.database, planned)[0]["well"], 20, "planned")
    beat.stop()
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now()")
    role.set("statement_timeout", "300ms")

    with trigger(cluster.database, table, "perform pg_sleep(0.004)"):
        beat = cluster.beat(settings={"pgbeat_lease": 60}, environment={"PGBEAT_URL": role.url()})
        eventually(lambda: len(jobs(cluster.database)) == 400, 30, "all go out")

    assert {1} == {job["occurrences"] for job in jobs(cluster.database)}
    assert "canceling statement due to statement timeout" in beat.log


def test_p10_hundreds_of_pauses_that_end_at_once_delay_no_tick(cluster: Cluster, role: Role) -> None:
    insert_many(cluster.database, 400, "every 1h")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false, paused_until = now() + interval '1 second'")
    role.set("statement_timeout", "300ms")

    with trigger(cluster.database, "periodic_task", "perform pg_sleep(0.004)"):
        cluster.beat(environment={"PGBEAT_URL": role.url()})
        planned = "select count(*) = 400 as well from pgbeat.periodic_task where next_run_at is not null"
        eventually(lambda: sql(cluster.database, planned)[0]["well"], 30, "all are resumed and planned")


@pytest.mark.parametrize("code", ["22003", "42501", "57014"])
def test_p10_a_statement_that_fails_each_time_keeps_nothing_else_from_being_done(cluster: Cluster, code: str) -> None:
    """A number out of range, a missing right, a statement that takes too long."""
    sql(
        cluster.database,
        "create or replace function pgbeat.settle_downstream(most int default 1000) returns int language plpgsql as "
        f"$$ begin raise exception 'it fails' using errcode = '{code}'; end $$",
    )
    sql(cluster.database, "insert into pgbeat.dependency_to_check (downstream) values ('a')")
    insert_many(cluster.database, 3)
    cluster.settings = {"pgbeat_poll": 0.5}

    beat = cluster.beat()
    beat.wait_for_log("The step 'settle downstream' failed, the others go on: ", 20)
    failed = clock(cluster.database)
    eventually(lambda: submitted_after(cluster.database, failed + 3 * SECOND, 3), 20, "rows go out for seconds")

    assert 1 == beat.log.count("The step 'settle downstream' failed")
    assert [] == gaps(cluster.database, SECOND)
