"""A beat whose connections are cut without a reset sends nothing after its lease; the others lose nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from tests.faults.conftest import Proof
from tests.faults.lengths import AWAY, LEASE, MARKS, within
from tests.faults.load import INBOX, Load, beats, now, sent_by, tapped, wait_until
from tests.harness.account import Limits
from tests.harness.broker import both_brokers
from tests.harness.cable import Cable
from tests.harness.probe_app import BROKER
from tests.harness.processes import Beat, Cluster
from tests.harness.wait import eventually

pytestmark = MARKS

CUT = timedelta(seconds=max(AWAY / 4, 2 * LEASE))
LEASE_AND_A_LITTLE = timedelta(seconds=LEASE + 0.2)  # the lease runs from before the mark, on another clock
ROWS = 20


@dataclass(frozen=True, slots=True)
class Island:
    """A beat that reaches Postgres and the broker through lines that can be cut."""

    beat: Beat
    postgres: Cable
    broker: Cable


@contextmanager
def island(cluster: Cluster) -> Iterator[Island]:
    """Start such a beat beside two others and a worker."""
    cluster.settings = {"pgbeat_lease": LEASE}
    with Cable(cluster.database) as postgres, Cable(cluster.broker) as broker:
        (beat,) = beats(cluster, 1, environment={"PGBEAT_URL": postgres.url, BROKER: broker.url})
        beats(cluster, 2)
        cluster.worker()
        yield Island(beat, postgres, broker)
        beat.kill()


# What was in the air when the line was cut may come twice: a round of the rows at most.
LIMITS = Limits(forgiven=ROWS, late={100: within(LEASE + 2)})


def test_a_beat_cut_off_from_postgres_sends_nothing_after_its_lease_and_others_take_over(
    cluster: Cluster, proven: Proof
) -> None:
    with island(cluster) as cut, tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        eventually(lambda: sent_by(tap, cut.beat, load.first), within(10), "it takes part")
        cut.postgres.cut()
        cut_at = now(cluster.database)
        wait_until(cluster.database, cut_at + CUT)
        back_at = now(cluster.database)
        cut.postgres.mend()
        eventually(lambda: sent_by(tap, cut.beat, back_at), within(20), "it takes part again")
        account = load.settle(tap, started=True)
        sent = sent_by(tap, cut.beat, cut_at + LEASE_AND_A_LITTLE, back_at)

    proven(account, LIMITS)
    assert [] == sent


@both_brokers
def test_a_beat_cut_off_from_the_broker_sends_nothing_after_its_lease_and_others_take_over(
    cluster: Cluster, proven: Proof
) -> None:
    with island(cluster) as cut, tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        eventually(lambda: sent_by(tap, cut.beat, load.first), within(10), "it takes part")
        cut.broker.cut()
        # A row that it marks before it knows of the cut has a lease of its own; others are faster to mark most rows.
        eventually(
            lambda: b"scheduled_for" in cut.broker.received_since(0) or "The broker" in cut.beat.log,
            within(10),
            "it writes once more, or knows",
        )
        lease_over = time.monotonic() + LEASE_AND_A_LITTLE.total_seconds()
        wait_until(cluster.database, now(cluster.database) + CUT)
        written = cut.broker.received_since(lease_over)
        back_at = now(cluster.database)
        cut.broker.mend()
        eventually(lambda: sent_by(tap, cut.beat, back_at + CUT / 2), within(20), "it takes part again")
        account = load.settle(tap, started=True)

    proven(account, LIMITS)
    assert b"scheduled_for" not in written
