"""P11: cost follows what is due, not what exists."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import psycopg2
import pytest

from celery_pgbeat.embedded import Postgres
from tests.harness.cost import slowness
from tests.harness.databases import migrate_database
from tests.harness.processes import Cluster
from tests.harness.rows import insert, insert_many, jobs, row, sql
from tests.harness.usage import cpu_seconds
from tests.harness.wait import eventually

IDLE = 10.0  # seconds that are watched
HEARTBEAT = 7  # statements, every ten seconds: there may be two of them in a little more than that
STORM = 3.0  # seconds
STATEMENT = "celery-pgbeat|LOG:  statement:"


@pytest.fixture
def talkative() -> Iterator[Postgres]:
    """A Postgres that logs every statement with the name of its application."""
    with Postgres(durable=False, options={"log_statement": "all", "log_line_prefix": "%a|"}) as server:
        migrate_database(server.url)
        yield server


def statements_of_beats(server: Postgres) -> int:
    return server.log.read_text(errors="replace").count(STATEMENT)


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
    sent_at = "select sent_at from pgbeat.job where periodic_task = 'first' and sent_at is not null"
    eventually(lambda: sql(cluster.database, sent_at), 10, "sent")
    assert time.monotonic() - before < 15 * slowness()
    assert jobs(cluster.database, "first")[0]["sent_at"] - inserted < timedelta(seconds=slowness())

    time.sleep(2)
    begun, cpu, earlier = time.monotonic(), cpu_seconds(beat.pid), statements_of_beats(talkative)
    time.sleep(IDLE)
    used = cpu_seconds(beat.pid) - cpu
    statements = statements_of_beats(talkative) - earlier
    seconds = time.monotonic() - begun

    assert 0 < statements <= 1.2 * seconds + 2 * HEARTBEAT  # one look a second
    assert used / seconds < 0.01


def test_p11_a_storm_of_edits_wakes_a_beat_at_most_twenty_times_a_second(cluster: Cluster, talkative: Postgres) -> None:
    """Each edit is a transaction, and notifies."""
    cluster.database = talkative.url
    insert(cluster.database, "edited", "every 1h")
    cluster.beat().wait_for_log("works on", 20)
    eventually(lambda: row(cluster.database, "edited")["next_run_at"], 10, "planned")
    earlier, edits = statements_of_beats(talkative), 0
    until = time.monotonic() + STORM
    with closing(psycopg2.connect(cluster.database)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        while time.monotonic() < until:
            edits += 1
            cursor.execute("update pgbeat.periodic_task set args = jsonb_build_array(%s::int)", (edits,))
    statements = statements_of_beats(talkative) - earlier

    assert 30 * STORM < edits, "more edits than looks that are allowed"
    assert 5 * STORM < statements < 25 * STORM
