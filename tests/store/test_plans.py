"""P11: cost follows what is due. What the statements of an idle beat read, on tables that Postgres has looked at."""

from __future__ import annotations

import pytest

from celery_pgbeat.postgres.statements import statement
from celery_pgbeat.postgres.store import Store
from tests.store.ticks import beat

ROWS = 5_000


@pytest.fixture
def store(migrated_database: str) -> Store:
    store = beat(migrated_database)
    store.database.execute(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        "select 'row-' || n, 'app.probe', 'every 1h', pgbeat.now() + n * interval '1 minute' "
        f"from generate_series(1, {ROWS}) n"
    )
    store.database.execute(
        "insert into pgbeat.active_job (id, periodic_task, scheduled_for, origin, state, exclusive, task, message, "
        "on_lost, tracking, pickup_deadline, busy_until) select gen_random_uuid(), 'row-' || mod(n, 5), pgbeat.now(), "
        "'catchup', 'buffered', false, 'app.probe', '{}', 'mark', 'full', '1 hour', 'infinity' "
        f"from generate_series(1, {ROWS}) n"
    )
    for table in ("periodic_task", "active_job"):
        store.database.execute(f"vacuum analyze pgbeat.{table}")
    return store


def explained(store: Store, sql: str, **parameters: object) -> str:
    return "\n".join(row[0] for row in store.database.execute(f"explain (analyze, timing off) {sql}", dict(parameters)))


def test_p11_a_look_reads_no_table_as_a_whole(store: Store) -> None:
    plan = explained(store, statement("look", "pgbeat"), lease=15.0, lazy_names=[])

    assert "Seq Scan" not in plan


def test_p11_a_mark_reads_what_is_due(store: Store) -> None:
    parameters = {"beat": "beat-a", "lease": 15.0, "batch": 100, "fresh": 0, "lazy_names": []}

    plan = explained(store, statement("mark", "pgbeat"), **parameters)

    assert "Seq Scan" not in plan


def test_p11_who_waits_is_found_by_one_probe_for_each_name(store: Store) -> None:
    plan = explained(store, "select array_agg(x) from unnest(pgbeat.waited_for()) as x")
    assert "rows=5 " in plan
    (row,) = store.database.execute("select pgbeat.waited_for() as names")
    assert [f"row-{n}" for n in range(5)] == row.names
