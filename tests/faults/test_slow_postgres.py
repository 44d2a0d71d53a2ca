"""Postgres is far away, or slow to commit: everything goes on, later."""

from __future__ import annotations

from celery_pgbeat.embedded import Postgres
from tests.faults.conftest import Proof
from tests.faults.lengths import MARKS, SECONDS, within
from tests.faults.load import INBOX, Load, beats, tapped
from tests.harness.account import Limits
from tests.harness.cable import Cable
from tests.harness.databases import migrate_database
from tests.harness.processes import Cluster
from tests.harness.rows import sql
from tests.harness.servers import POSTGRES_OPTIONS

pytestmark = MARKS

ROWS = 20
ROUND_TRIP = 0.08  # seconds: another region
COMMIT = 10_000  # microseconds


def test_beats_and_workers_that_are_far_from_postgres_lose_and_double_nothing(cluster: Cluster, proven: Proof) -> None:
    with Cable(cluster.database, delay=ROUND_TRIP / 2) as cable:
        work_at(cluster, cable.url, proven, late=10 * ROUND_TRIP)


def test_commits_that_take_ten_milliseconds_lose_and_double_nothing(cluster: Cluster, proven: Proof) -> None:
    with Postgres(options=POSTGRES_OPTIONS) as durable:  # without fsync no commit waits
        migrate_database(durable.url)
        cluster.database = durable.url
        for setting in (f"commit_delay = {COMMIT}", "commit_siblings = 0"):
            sql(durable.url, f"alter database postgres set {setting}")
        work_at(cluster, durable.url, proven, late=0.5)
        cluster.end()


def work_at(cluster: Cluster, url: str, proven: Proof, late: float) -> None:
    """Have two beats and a worker that reach Postgres by this URL do a round, and judge it."""
    environment = {"PGBEAT_URL": url}
    nodes = [*beats(cluster, 2, environment=environment), cluster.worker(concurrency=4, environment=environment)]
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'", seconds=SECONDS)
        load.runs_for(SECONDS)
        account = load.settle(tap, started=True)
    proven(account, Limits(late={99: within(late)}))
    assert all(node.is_running() for node in nodes)
