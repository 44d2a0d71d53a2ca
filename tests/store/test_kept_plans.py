"""What each tick and each job calls is planned once a connection: planning takes longer than running."""

from __future__ import annotations

import re
from contextlib import closing

import psycopg2
import pytest

from celery_pgbeat.postgres.database import Database
from tests.harness.jobs import make_job

SETTLED_AFTER = 10  # calls: Postgres makes five plans of their own before it compares them with the general one
IDS = "array(select id from pgbeat.active_job limit 3)"
CALLS = {
    "mark": "select * from pgbeat.mark('beat', 15, 10, 0, array[]::text[], at_once => true, on_time => 30)",
    "submit_free": (
        "select * from pgbeat.submit_free('beat', 'UTC', 'full', '{row}', array[now()], array[now()],"
        " array[gen_random_uuid()], array[now()], array[now()], '{schedule}', array[null::timestamptz],"
        " array[null::timestamptz], array[null::int], array[null::text],"
        " array[now()], array[now()], array[now()], '{1}')"
    ),
    "confirm": f"select * from pgbeat.confirm({IDS}, '{{}}', 'beat')",
    "start": "select pgbeat.start(gen_random_uuid(), 0, 0, gen_random_uuid(), 'worker', 30)",
    "finish_many": (
        f"select * from pgbeat.finish_many({IDS}, '{{0,0,0}}', '{{0,0,0}}', {IDS}, '{{w,w,w}}', '{{lost,lost,lost}}',"
        " '{e,e,e}')"
    ),
}


@pytest.fixture
def crowded(migrated_database: str) -> str:
    with closing(Database(migrated_database)) as database:
        for number in range(3):
            make_job(database, periodic_task=f"row-{number}")
    return migrated_database


@pytest.mark.parametrize("name", CALLS)
def test_after_some_calls_only_the_call_itself_is_planned(crowded: str, name: str) -> None:
    with closing(psycopg2.connect(crowded)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        for _ in range(SETTLED_AFTER):
            cursor.execute(CALLS[name])
        cursor.execute("set log_planner_stats = on")
        cursor.execute("set client_min_messages = log")
        del connection.notices[:]
        cursor.execute(CALLS[name])
        planned = [text for text in connection.notices if "PLANNER STATISTICS" in text]

    assert 1 == len(planned)


def test_the_spans_of_a_marked_row_are_not_written_out_in_the_statement_that_reads_it(migrated_database: str) -> None:
    """A function in SQL is: three of them took three quarters of the planning of a mark."""
    with closing(psycopg2.connect(migrated_database)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "explain (verbose) select pgbeat.microseconds(jitter) from pgbeat.mark('beat', 15, 10, 0, array[]::text[])"
        )
        plan = " ".join(line for (line,) in cursor.fetchall())

    assert re.search(r"Output: (pgbeat\.)?microseconds\(", plan), plan
