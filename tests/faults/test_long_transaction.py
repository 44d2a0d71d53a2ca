"""A transaction stays open for an hour: vacuum may remove none of the dead rows that beats leave meanwhile."""

from __future__ import annotations

from contextlib import closing

import psycopg2

from tests.faults.conftest import Proof
from tests.faults.lengths import MARKS, SECONDS, within
from tests.faults.load import Load, beats, tapped
from tests.harness.account import Limits
from tests.harness.processes import Cluster
from tests.harness.rows import sql

pytestmark = MARKS

ROWS, ROUNDS = 200, 180
LEFT = ROWS * ROUNDS  # what ten ticks a second leave behind in an hour

# All in one transaction, so that no one else sees these rows; their entries in the indexes are there all the same.
LEAVE = f"""
set local session_replication_role = replica;
insert into pgbeat.periodic_task (name, task, next_run_at)
select 'left-' || n, 'app.probe', now() - interval '1 hour' from generate_series(1, {ROWS}) n;
do $$
begin
    for number in 1..{ROUNDS} loop
        update pgbeat.periodic_task set next_run_at = next_run_at + interval '10 seconds'
        where starts_with(name, 'left-');
    end loop;
end
$$;
delete from pgbeat.periodic_task where starts_with(name, 'left-');
"""
KEPT = "select n_dead_tup as rows from pg_stat_user_tables where relid = 'pgbeat.periodic_task'::regclass"


def test_dead_rows_that_vacuum_may_not_remove_for_an_hour_make_no_tick_late(cluster: Cluster, proven: Proof) -> None:
    beats(cluster, 2)
    with closing(psycopg2.connect(cluster.database)) as reader, tapped(cluster) as tap:
        reader.cursor().execute("select txid_current()")
        with closing(psycopg2.connect(cluster.database)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(LEAVE)
        load = Load(cluster, 50)
        load.runs_for(SECONDS)
        sql(cluster.database, "vacuum pgbeat.periodic_task")
        (kept,) = sql(cluster.database, KEPT)
        account = load.settle(tap)

    assert LEFT < kept["rows"]
    proven(account, Limits(late={99: within(0.5)}))
