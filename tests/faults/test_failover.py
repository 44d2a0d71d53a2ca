"""A standby takes over: what only the dead primary had committed is done again, under the same ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from celery_pgbeat.embedded import Postgres, ServerUnavailable
from tests.faults.conftest import Proof
from tests.faults.lengths import LEASE, MARKS, within
from tests.faults.load import INBOX, SECOND, Load, beats, now, tapped, wait_until
from tests.faults.test_outages import BACK, IN_THE_AIR, works_again
from tests.harness.account import Limits, first_each
from tests.harness.cable import Cable
from tests.harness.databases import migrate_database
from tests.harness.probe import Probe
from tests.harness.probe_app import DATABASE
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.servers import POSTGRES_OPTIONS
from tests.harness.standby import Standby, whichever_is_primary
from tests.harness.wait import eventually

pytestmark = MARKS

ROWS = 20
DEAD_AFTER = 4  # seconds; a job whose start or end is lost with the primary is given up after them
UNTOLD = 3 * SECOND  # before its end the primary's commits reach no standby any more


class Pair:
    """A primary and its standby, and the cable between them."""

    def __init__(self, primary: Postgres, standby: Standby, cable: Cable) -> None:
        self.primary = primary
        self.standby = standby
        self.cable = cable
        self.url = whichever_is_primary(primary.url, standby.url)

    def commit_to_both(self) -> None:
        """Have each commit wait until the standby has it."""
        for statement in ("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"):
            sql(self.primary.url, statement)
        state = "select 1 from pg_stat_replication where sync_state = 'sync'"
        eventually(lambda: sql(self.primary.url, state), 20, "the standby is synchronous")

    def fail_over(self) -> None:
        """Kill the primary, and promote the standby."""
        self.primary.kill()
        self.standby.promote()


@pytest.fixture
def pair(own_postgres: Postgres) -> Iterator[Pair]:
    migrate_database(own_postgres.url)
    with Cable(own_postgres.url) as cable:
        standby = Standby(cable.url, options=POSTGRES_OPTIONS)
        try:
            standby.start()
        except ServerUnavailable as error:  # not every set of programs has pg_basebackup
            pytest.skip(str(error))
        yield Pair(own_postgres, standby, cable)
        cable.cut()
        standby.stop()


@pytest.fixture
def runs(cluster: Cluster, pair: Pair) -> Probe:
    """What ran, recorded where no failover takes it away; the cluster works on the pair."""
    record = cluster.probe
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_dead_after": DEAD_AFTER, "pgbeat_pickup_deadline": DEAD_AFTER}
    cluster.database = pair.url
    return record


def test_a_beat_connected_to_a_standby_waits_until_it_is_promoted(cluster: Cluster, pair: Pair) -> None:
    insert(pair.primary.url, "once", None, next_run_at="2026-01-01T00:00:00Z")
    beat = cluster.beat(environment={"PGBEAT_URL": pair.standby.url})
    beat.wait_for_log("read-only transaction. Nothing is sent meanwhile.", 20)

    pair.fail_over()

    eventually(lambda: [job for job in jobs(pair.standby.url) if job["sent_at"]], within(10), "it is sent")
    assert beat.is_running()


def test_a_failover_to_a_standby_that_has_every_commit_is_like_a_restart(
    cluster: Cluster, pair: Pair, runs: Probe, proven: Proof, note: Callable[[str], None]
) -> None:
    pair.commit_to_both()
    environment = {DATABASE: runs.url}
    nodes = [*beats(cluster, 2, environment=environment), cluster.worker(environment=environment)]
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        load.runs_for(2)
        pair.fail_over()
        took = works_again(tap, now(cluster.database))
        account = load.settle(tap)
        eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), within(20), "all runs")

    note(f"first send {took:.1f} s after the standby's first answer")
    proven(replace(account, started=runs.runs()), IN_THE_AIR)
    assert took < BACK
    assert all(node.is_running() for node in nodes)


def test_a_failover_that_loses_commits_repeats_their_jobs_under_the_same_ids(
    cluster: Cluster, pair: Pair, runs: Probe, proven: Proof, note: Callable[[str], None]
) -> None:
    environment = {DATABASE: runs.url}
    nodes = [*beats(cluster, 2, environment=environment), cluster.worker(environment=environment)]
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        load.runs_for(2)
        pair.cable.cut()
        untold_from = now(cluster.database)
        wait_until(cluster.database, untold_from + UNTOLD)
        pair.fail_over()
        works_again(tap, now(cluster.database))
        account = load.settle(tap)
        eventually(lambda: not sql(cluster.database, "select 1 from pgbeat.active_job"), within(20), "all runs")

    started = runs.runs()
    again = [run for run in started if run not in first_each(started)]
    assert again, "no commit was lost"
    note(f"{len(again)} of {len(started)} runs were repeated")
    repeated = ROWS * (UNTOLD // SECOND + 2)
    proven(replace(account, started=first_each(started)), Limits(forgiven=repeated))
    ids = Counter(
        (periodic_task, instant)
        for periodic_task, instant, _ in {
            (arrival.periodic_task, arrival.scheduled_for, arrival.job) for arrival in tap.arrivals
        }
    )
    assert {1} == set(ids.values())
    first = {(run.periodic_task, run.scheduled_for): run.started_at for run in first_each(started)}
    slack = timedelta(seconds=within(0.2))  # some commits may have been on their way when the cable was cut
    assert [] == [run for run in again if first[run.periodic_task, run.scheduled_for] < untold_from - slack]
    assert all(node.is_running() for node in nodes)
