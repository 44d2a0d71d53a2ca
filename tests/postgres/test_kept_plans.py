"""What each tick and each job calls is planned once a connection: planning takes longer than running."""

from __future__ import annotations

import re
from contextlib import closing

import psycopg2
import pytest

from celery_pgbeat.postgres.database import Database
from tests.harness.jobs import make_job

SETTLED_AFTER = 10  # calls: Postgres makes five plans of their own before it compares them with the general one
TOKEN = "00000000-0000-0000-0000-000000000001"
IDS = "array(select id from pgbeat.active_job where periodic_task in ('row-0', 'row-1', 'row-2'))"
DECIDED = (
    "array[row(name, marked_at, next_run_at, null, null, null, null, gen_random_uuid(), next_run_at, next_run_at,"
    " 'schedule', now(), next_run_at + interval '1 h', next_run_at + interval '1 h', 1, null, null)::pgbeat.decision]"
)
# Each does something, and is taken back.
CALLS = {
    "look": "select due from pgbeat.look(15, '{}', '{}', '{}')",
    "mark": "select mark.name from pgbeat.mark('beat', 15, 10, 0, '{}', '{}', '{}', at_once => true, on_time => 30)",
    "submit, by set": (
        "select free.made from pgbeat.periodic_task cross join lateral"
        f" pgbeat.submit('beat', 'UTC', 'full', true, true, 100, false, {DECIDED}) as free"
        " where periodic_task.name = 'free' and free.made"
    ),
    "submit, one by one": (
        "select blocked.blocked_by from pgbeat.periodic_task cross join lateral"
        f" pgbeat.submit('beat', 'UTC', 'full', true, true, 100, false, {DECIDED}) as blocked"
        " where periodic_task.name = 'blocked' and blocked.blocked_by is not null"
    ),
    "confirm": f"select id from pgbeat.confirm({IDS}, '{{}}', 'beat') where not locked",
    "start": (
        "select 1 from pgbeat.active_job"
        f" where periodic_task = 'row-0' and pgbeat.start(id, 0, 0, '{TOKEN}', 'w', 30, null)"
    ),
    "start_spaced": (
        "select spaced.id from pgbeat.active_job as job cross join lateral"
        f" pgbeat.start_spaced(job.id, 0, 0, '{TOKEN}', 'w', 30, null) as spaced"
        " where job.periodic_task = 'spaced' and started"
    ),
    "finish_many": (
        f"select count(*) from pgbeat.finish_many({IDS}, '{{0,0,0}}', '{{0,0,0}}', {IDS}, '{{w,w,w}}',"
        " '{lost,lost,lost}', '{e,e,e}')"
    ),
}


@pytest.fixture
def crowded(migrated_database: str) -> str:
    with closing(Database(migrated_database)) as database:
        for name in ("row-0", "row-1", "row-2", "blocked", "spaced"):
            make_job(database, periodic_task=name)
        for name in ("free", "blocked", "due"):
            database.execute(
                "insert into pgbeat.periodic_task (name, task, schedule, next_run_at, group_name, pause_after_failures)"
                f" values ('{name}', 'app.probe', 'every 1h', pgbeat.now(), 'unlimited', 3)"
            )
        database.execute(
            "update pgbeat.periodic_task set marked_by = 'beat', marked_at = now(), mark_lease = '1 h' "
            "where name <> 'due'"
        )
        database.execute("update pgbeat.active_job set min_gap = '1 s' where periodic_task = 'spaced'")
        database.execute(
            "update pgbeat.active_job set state = 'pending', marked_by = 'beat', token = id"
            " where periodic_task like 'row-%%'",
            {},
        )
    return migrated_database


@pytest.mark.parametrize("name", CALLS)
def test_after_some_calls_only_the_call_itself_is_planned(crowded: str, name: str) -> None:
    with closing(psycopg2.connect(crowded)) as connection, connection.cursor() as cursor:
        cursor.execute("set client_min_messages = log")
        connection.commit()
        for _ in range(SETTLED_AFTER):
            cursor.execute(CALLS[name])
            connection.rollback()
        cursor.execute("set log_planner_stats = on")
        del connection.notices[:]
        cursor.execute(CALLS[name])
        planned = [text for text in connection.notices if "PLANNER STATISTICS" in text]
        answers = cursor.rowcount
        cursor.execute("select pg_current_xact_id_if_assigned() is not null")

        assert cursor.fetchone() == (name != "look",)  # the call has written something
        assert answers > 0
        assert 1 == len(planned), planned


def test_the_durations_of_a_marked_row_are_not_written_out_in_the_statement_that_reads_it(
    migrated_database: str,
) -> None:
    """A function in SQL is: three of them took three quarters of the planning of a mark."""
    with closing(psycopg2.connect(migrated_database)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "explain (verbose) select pgbeat.microseconds(jitter) from pgbeat.mark('beat', 15, 10, 0, '{}', '{}', '{}')"
        )
        plan = " ".join(line for (line,) in cursor.fetchall())

    assert re.search(r"Output: (pgbeat\.)?microseconds\(", plan), plan
