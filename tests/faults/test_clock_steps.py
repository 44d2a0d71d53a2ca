"""P7: the database's clock is set an hour forth or back: nothing goes out early, twice, or in a storm."""

from __future__ import annotations

import contextlib
from datetime import timedelta

from tests.faults.conftest import Proof
from tests.faults.lengths import MARKS, within
from tests.faults.load import SECOND, Load, beats, now, tapped, wait_until
from tests.harness.account import Limits
from tests.harness.clock import Clock
from tests.harness.processes import Cluster
from tests.harness.tap import Tap
from tests.harness.wait import eventually

pytestmark = MARKS

HOUR = timedelta(hours=1)
ROWS = 10
ON_TIME = 32  # seconds: 2 x (lease + poll); each row's ticks of these go out by themselves, and one of those before


def test_a_clock_set_forward_counts_as_an_outage(cluster: Cluster, database_clock: Clock, proven: Proof) -> None:
    beats(cluster, 2)
    with Tap(cluster.broker, now=database_clock.now) as tap:
        load = Load(cluster, ROWS)
        load.runs_for(2)
        before = database_clock.now()
        database_clock.advance(HOUR)
        until = database_clock.now() + 2 * SECOND
        with contextlib.suppress(AssertionError):
            eventually(lambda: not load.account(tap, until).lost, within(5), "all of the hour", every=0.5)
        account = load.account(tap, until)
        passed = database_clock.now() - until + 2 * SECOND

    proven(account, Limits())
    after = [arrival for arrival in tap.arrivals if arrival.seen_at > before + HOUR]
    assert len(after) <= ROWS * (1 + ON_TIME + passed / SECOND + 1)


def test_a_clock_set_back_decides_nothing_twice(cluster: Cluster, database_clock: Clock, proven: Proof) -> None:
    beats(cluster, 2)
    with tapped(cluster) as tap:
        load = Load(cluster, ROWS)
        load.runs_for(within(1) + 2)
        database_clock.advance(-HOUR)
        stepped_at = now(cluster.database)
        wait_until(cluster.database, stepped_at + within(1) * SECOND + 3 * SECOND)
        account = load.account(tap, stepped_at - within(1) * SECOND)

    proven(account, Limits())
    assert [] == [arrival for arrival in tap.arrivals if arrival.seen_at > stepped_at + within(1) * SECOND]
