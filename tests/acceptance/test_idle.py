"""P11: cost follows what is due, not what exists."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from celery_pgbeat.embedded import Postgres
from tests.acceptance.rows import insert, insert_many, jobs, row, sql
from tests.harness.databases import migrate_database
from tests.harness.processes import Cluster
from tests.harness.wait import eventually

IDLE = 10.0  # seconds that are watched
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@pytest.fixture
def talkative() -> Iterator[Postgres]:
    """A Postgres that logs every statement."""
    with Postgres(durable=False, options={"log_statement": "all"}) as server:
        migrate_database(server.url)
        yield server


def test_p11_ten_thousand_idle_rows_cost_an_idle_beat_almost_nothing(cluster: Cluster, talkative: Postgres) -> None:
    cluster.database = talkative.url
    insert_many(cluster.database, 10_000, "0 0 1 1 *")
    first = cluster.beat()
    unplanned = "select 1 from pgbeat.periodic_task where planned_revision <> revision limit 1"
    eventually(lambda: not sql(cluster.database, unplanned), 60, "all rows are planned")
    first.stop()

    before = time.monotonic()
    beat = cluster.beat()
    beat.wait_for_log("works on", 20)
    insert(cluster.database, "first", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    inserted = row(cluster.database, "first")["created_at"]
    sent_at = "select submitted_at from pgbeat.job where periodic_task = 'first' and submitted_at is not null"
    eventually(lambda: sql(cluster.database, sent_at), 10, "sent")
    assert time.monotonic() - before < 15
    assert jobs(cluster.database, "first")[0]["submitted_at"] - inserted < timedelta(seconds=1)

    time.sleep(2)
    cpu, said = cpu_seconds(beat.pid), talkative.log.read_text(errors="replace").count("LOG:  statement:")
    time.sleep(IDLE)
    used = cpu_seconds(beat.pid) - cpu
    statements = talkative.log.read_text(errors="replace").count("LOG:  statement:") - said

    assert 0 < statements / IDLE < 2
    assert used / IDLE < 0.01
