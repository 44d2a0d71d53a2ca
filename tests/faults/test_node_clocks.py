"""P7, B-9: the clocks of nodes are five minutes slow, or fast: only their logs show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from tests.faults.conftest import Proof
from tests.faults.lengths import LEASE, MARKS, SECONDS, within
from tests.faults.load import INBOX, SECOND, Load, now, tapped, working
from tests.harness.account import Limits
from tests.harness.checker import lateness
from tests.harness.faketime import FakeTimeUnavailable, wrong_by
from tests.harness.processes import START_TIMEOUT, Cluster, Node
from tests.harness.rows import jobs, sql
from tests.harness.servers import missing
from tests.harness.wait import eventually

pytestmark = MARKS

ROWS = 30
DEAD_AFTER = 3  # seconds
WRONG = timedelta(minutes=5)
NEAR = timedelta(minutes=1)  # how old the last line of a node at work may be


@pytest.fixture(scope="module")
def clocks() -> dict[timedelta, dict[str, str]]:
    """The environments of nodes, by how fast their clocks are."""
    try:
        return {-WRONG: wrong_by(-WRONG), timedelta(0): {}, WRONG: wrong_by(WRONG)}
    except FakeTimeUnavailable as error:
        missing("faketime", str(error))


def ahead(node: Node, url: str) -> timedelta:
    """Return how far a node at work is ahead of the database, by the last line of its log."""
    shown = [line[1:24] for line in node.log.splitlines() if line.startswith("[20")]
    return datetime.strptime(shown[-1], "%Y-%m-%d %H:%M:%S,%f").astimezone() - now(url)


def test_beats_and_workers_with_wrong_clocks_send_and_start_each_tick_once_and_on_time(
    cluster: Cluster, clocks: dict[timedelta, dict[str, str]], proven: Proof, note: Callable[[str], None]
) -> None:
    cluster.settings = {"pgbeat_lease": LEASE, "pgbeat_dead_after": DEAD_AFTER}
    beats = {offset: cluster.beat(environment=clock, wait=False) for offset, clock in clocks.items()}
    wrong = {offset: clock for offset, clock in clocks.items() if clock}
    workers = {offset: cluster.worker(environment=clock, concurrency=4, wait=False) for offset, clock in wrong.items()}
    for worker in workers.values():
        worker.wait_for_log(worker.ready_word, START_TIMEOUT)
    for beat in beats.values():
        working(beat)
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        long = Load(cluster, 2, name="long", every=5 * SECOND, sleep=DEAD_AFTER + 1, queue=f"'{INBOX}'")
        load.runs_for(SECONDS)
        told = [(offset, ahead(node, load.url)) for nodes in (beats, workers) for offset, node in nodes.items()]
        accounts = [each.settle(tap, started=True) for each in (load, long)]
        eventually(lambda: not sql(load.url, "select 1 from pgbeat.active_job"), within(10), "the end of all runs")

    runs = cluster.probe.runs()
    sent = Counter(arrival.pid for arrival in tap.arrivals)
    started = Counter((run.worker or "").partition("@")[0] for run in runs)
    slowest = lateness(runs, [99])[99]
    note(f"sent by each: {list(sent.values())}; started by each: {list(started.values())}, p99 {slowest}")
    for account in accounts:
        proven(account, Limits(late={99: within(0.5)}))
        assert [] == account.recorded
    assert slowest < timedelta(seconds=within(2))
    assert {beat.pid for beat in beats.values()} == set(sent)
    assert {worker.name for worker in workers.values()} == set(started)
    assert {"succeeded"} == {job["state"] for job in jobs(load.url)}
    assert [] == [(offset, shown) for offset, shown in told if abs(shown - offset) > NEAR]
