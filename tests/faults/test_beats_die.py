"""Beats are killed, stopped in good order, and frozen, again and again: no tick is lost, none starts twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from tests.faults.conftest import Proof
from tests.faults.lengths import LEASE, MARKS, SECONDS, part, within
from tests.faults.load import INBOX, WORKS, Load, beats, now, paced, sent_by, tapped, wait_until, working
from tests.harness.account import Limits
from tests.harness.processes import Cluster
from tests.harness.rows import sql
from tests.harness.wait import eventually

pytestmark = MARKS
PENDING = "select count(*) from pgbeat.active_job where state = 'pending'"


def test_beats_killed_at_random_delay_their_ticks_by_at_most_the_lease(
    cluster: Cluster, proven: Proof, note: Callable[[str], None]
) -> None:
    cluster.settings = {"pgbeat_lease": LEASE}
    running = beats(cluster, 4)
    cluster.worker()
    kills = unconfirmed = 0
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, 30, queue=f"'{INBOX}'")
        load.runs_for(1)
        for _ in paced(SECONDS, every=0.5):
            victim = random.choice(running)
            if any(beat.has_logged(WORKS) for beat in running if beat is not victim):  # else no beat could take over
                victim.kill()
                unconfirmed += sql(cluster.database, PENDING)[0]["count"]
                victim.start(wait=False)
                kills += 1
        account = load.settle(tap, started=True)

    note(f"{kills} kills")
    # Only what was not confirmed when a beat was killed may be sent again.
    proven(account, Limits(forgiven=unconfirmed, late={100: within(LEASE + 2)}))


def test_beats_restarted_one_after_the_other_hand_over_without_a_gap(cluster: Cluster, proven: Proof) -> None:
    running = beats(cluster, 4)
    with tapped(cluster) as tap:
        load = Load(cluster, 100)
        load.runs_for(1)
        for _ in range(part(10)):
            for beat in running:
                assert 0 == beat.stop()
                working(beat.start(wait=False))
        account = load.settle(tap)

    proven(account, Limits(late={100: within(1.5)}))


def test_a_beat_frozen_for_three_leases_sends_nothing_stale_when_it_resumes(cluster: Cluster, proven: Proof) -> None:
    cluster.settings = {"pgbeat_lease": LEASE}
    running = beats(cluster, 3)
    cluster.worker()
    naps = []
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, part(50, least=20), queue=f"'{INBOX}'")
        load.runs_for(1)
        for _ in range(part(20, least=2)):
            sleeper = random.choice(running)
            sleeper.freeze()
            frozen_at = now(cluster.database)
            wait_until(cluster.database, frozen_at + timedelta(seconds=3 * LEASE))
            woken_at = now(cluster.database)
            sleeper.resume()
            naps.append((sleeper, frozen_at, woken_at))
            eventually(partial(sent_by, tap, sleeper, woken_at), within(10), "the woken beat works again")
        account = load.settle(tap, started=True)

    proven(account, Limits(doubled_sends=0.005, forgiven=2, late={100: within(LEASE + 2)}))
    stale = [
        [arrival for arrival in sent_by(tap, sleeper, woken_at) if (arrival.scheduled_for or woken_at) <= frozen_at]
        for sleeper, frozen_at, woken_at in naps
    ]
    # A beat that is frozen between its look at the clock and its write sends that write. The guard drops its messages.
    assert max(1, len(naps) // 20) >= len([arrivals for arrivals in stale if arrivals]), stale
