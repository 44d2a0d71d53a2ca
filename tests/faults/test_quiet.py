"""Without faults: many beats, no leader, each tick sent once and on time."""

from __future__ import annotations

from collections import Counter

from tests.faults.conftest import Proof
from tests.faults.lengths import MARKS, SECONDS, part, within
from tests.faults.load import Load, beats, tapped
from tests.harness.account import Limits
from tests.harness.broker import both_brokers
from tests.harness.processes import Cluster
from tests.harness.rows import jobs

pytestmark = MARKS
# Seconds, at 2,000 messages a second: RabbitMQ takes more of the two processors that it shares with beats and tap.
MOST_LATE = {"redis": 0.5, "amqp": 1.0}


@both_brokers
def test_four_beats_send_each_tick_once_and_on_time(cluster: Cluster, proven: Proof) -> None:
    running = beats(cluster, 4)
    with tapped(cluster) as tap:
        # They end before the account is drawn up: that takes a processor from beats and tap.
        load = Load(cluster, part(2000, least=100), seconds=SECONDS)
        load.runs_for(SECONDS + within(0.5))
        account = load.settle(tap)

    proven(account, Limits(late={99: within(MOST_LATE["amqp" if cluster.broker.startswith("amqp") else "redis"])}))
    assert {str(job["id"]) for job in jobs(cluster.database)} == {arrival.job for arrival in tap.arrivals}
    shares = Counter(arrival.pid for arrival in tap.arrivals)
    assert set(shares) == {beat.pid for beat in running}
