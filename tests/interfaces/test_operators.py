"""What operators' statements read of large tables, and that each is given just the parameters that it has."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.statements import parameters, statement

TASKS = 20_000
JOBS = 50_000
FILTERS = dict.fromkeys(("pattern", "task", "queue", "managed_by", "group_name", "enabled", "with_problem"))
JOB_FILTERS = dict.fromkeys(
    ("name", "pattern", "states", "reason", "task", "queue", "group_name", "since", "until", "before", "before_at")
)


@pytest.fixture(scope="module")
def database(shared_database: str) -> Iterator[Database]:
    """A database with many rows, which the tests only read."""
    made = Database(shared_database)
    made.execute(
        "insert into pgbeat.periodic_task (name, task, schedule, queue) select 'row-' || n, 'app.' || mod(n, 100), "
        f"'every 1h', case when mod(n, 1000) = 0 then 'rare' end from generate_series(1, {TASKS}) n"
    )
    made.execute(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at) select gen_random_uuid(), 'row-' || mod(n, 1000), now(), 'schedule', 'succeeded', 'app.0', "
        f"pgbeat.now() - n * interval '1 millisecond', now() from generate_series(1, {JOBS}) n"
    )
    made.execute("vacuum analyze")
    yield made
    made.close()


def plan_of(database: Database, name: str, /, **values: object) -> str:
    sql = f"explain (analyze, timing off, summary off) {statement(name, 'pgbeat')}"
    return "\n".join(row[0] for row in database.execute(sql, dict(values)))


def rows_read(plan: str) -> int:
    return max(int(rows) for rows in re.findall(r"rows=(\d+)(?:\.00)? loops=1", plan))


@pytest.mark.parametrize("after", ["", "row-5"])
def test_a_page_of_periodic_tasks_follows_the_primary_key_and_ends_when_it_is_full(
    database: Database, after: str
) -> None:
    plan = plan_of(database, "page_of_tasks", limit=100, after=after, **FILTERS)

    assert "Index Scan using periodic_task_pkey" in plan
    assert "Sort" not in plan
    assert 100 == rows_read(plan)


def test_a_page_of_jobs_follows_the_days_backwards_and_ends_when_it_is_full(database: Database) -> None:
    plan = plan_of(database, "page_of_jobs", limit=50, **JOB_FILTERS)

    assert "Index Scan Backward using finished_job_" in plan
    assert "Seq Scan on finished_job" not in plan
    assert rows_read(plan) < 200


def test_a_later_page_of_jobs_begins_at_its_place(database: Database) -> None:
    ((job, created_at),) = database.execute(
        "select id, created_at from pgbeat.finished_job order by created_at desc offset 10000 limit 1"
    )

    plan = plan_of(database, "page_of_jobs", limit=50, **{**JOB_FILTERS, "before": str(job), "before_at": created_at})

    assert rows_read(plan) < 200


def test_the_jobs_of_one_row_are_found_by_its_name(database: Database) -> None:
    plan = plan_of(database, "page_of_jobs", limit=50, **{**JOB_FILTERS, "name": "row-7"})

    assert "_periodic_task_created_at_idx" in plan
    assert rows_read(plan) < 200


@pytest.mark.parametrize(("state", "table"), [("running", "finished_job"), ("succeeded", "active_job")])
def test_a_state_of_one_table_leaves_the_other_unread(database: Database, state: str, table: str) -> None:
    assert table not in plan_of(database, "page_of_jobs", limit=50, **{**JOB_FILTERS, "states": [state]})


def test_the_beginning_of_an_id_finds_its_job_by_the_indexes_on_the_id(database: Database) -> None:
    lowest, highest = f"abc{'0' * 29}", f"abc{'f' * 29}"

    plan = plan_of(database, "jobs_between", lowest=lowest, highest=highest, limit=6)

    assert "_id_idx" in plan
    assert rows_read(plan) < 100  # days without a job are empty


def test_the_states_of_a_page_are_read_by_their_names(database: Database) -> None:
    names = [f"row-{number}" for number in range(1, 101)]

    plan = plan_of(database, "statuses_of", names=names)

    assert "periodic_task_pkey" in plan
    assert 100 == rows_read(plan)


def test_what_is_overdue_longest_is_read_by_when_it_was_due(database: Database) -> None:
    assert "periodic_task_due" in plan_of(database, "latest_due", limit=5)


def test_what_is_made_of_late_and_what_is_overdue_are_read_by_their_instants(database: Database) -> None:
    plan = plan_of(database, "activity", seconds=1.0)

    assert "_created_at_idx" in plan
    assert "using periodic_task_due" in plan
    assert "using periodic_task_resumes" in plan
    assert "Seq Scan on periodic_task" not in plan


@pytest.mark.parametrize(
    "method",
    [
        name
        for name, _ in inspect.getmembers(AdminQueries, inspect.isfunction)
        if not name.startswith("_") and name not in ("all_tasks", "transaction", "similar_name")
    ],
)
def test_a_method_gives_its_statement_just_the_parameters_that_it_has(method: str) -> None:
    source = inspect.getsource(getattr(AdminQueries, method))
    given = set(re.findall(r"[(,] ?(\w+)=", source)) - {"connection"}
    if "filters" in source:
        given |= set(re.findall(r'"(\w+)"', source.partition("fromkeys")[2].partition(")")[0]))

    assert parameters(method) == given - {"key"}
