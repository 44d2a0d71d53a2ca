"""Settings that an administrator gives the role of beats and workers: they work on, and log nothing about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.acceptance.decisions import decided, gaps
from tests.harness import checker
from tests.harness.processes import Cluster, Node
from tests.harness.role import Role
from tests.harness.rows import insert_many, jobs, sql
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)

# What bounds a session: the first version of Postgres that knows it, the setting, the value.
BOUNDS = [
    (13, "statement_timeout", "30s"),
    (13, "lock_timeout", "10s"),
    (13, "idle_in_transaction_session_timeout", "2s"),
    (14, "idle_session_timeout", "400ms"),
    (17, "transaction_timeout", "30s"),
    (13, "work_mem", "64kB"),
    (13, "search_path", ""),
    (13, "row_security", "off"),
    (13, "default_transaction_deferrable", "on"),
    (13, "jit_above_cost", "0"),
    (13, "plan_cache_mode", "force_generic_plan"),
    (13, "log_statement", "all"),
]


def version(url: str) -> int:
    (row,) = sql(url, "select current_setting('server_version_num')::int / 10000 as major")
    return int(row["major"])


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_settings_of_a_role_neither_lose_a_tick_nor_show_in_the_log(cluster: Cluster, role: Role, driver: str) -> None:
    for since, setting, value in BOUNDS:
        if version(cluster.database) >= since:
            sql(cluster.database, f"alter role {role.name} set {setting} = '{value}'")

    insert_many(cluster.database, 20)
    environment = {"PGBEAT_URL": role.url(driver)}
    cluster.settings = {"pgbeat_lease": 2, "pgbeat_poll": 0.5}
    nodes: list[Node] = [cluster.beat(environment=environment) for _ in range(2)]
    nodes.append(cluster.worker(environment=environment))
    eventually(lambda: len(cluster.probe.runs()) >= 120, 40, "six rounds")
    sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
    eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), 30, "nothing is under way")

    runs = cluster.probe.runs()
    sent = [job for job in jobs(cluster.database) if job["state"] != "skipped"]
    assert [] == [
        line for node in nodes for line in node.log.splitlines() if ": WARNING/" in line or ": ERROR/" in line
    ]
    assert {1} == set(decided(cluster.database, SECOND).values())
    assert [] == gaps(cluster.database, SECOND)
    assert [] == checker.lost([(job["periodic_task"], job["scheduled_for"]) for job in sent], runs)
    assert [] == checker.doubled(runs)
