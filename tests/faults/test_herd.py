"""A large backlog that is due at once is sent soon, and rows that have just come due do not wait behind it."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.lengths import FULL, MARKS, SECONDS, within
from tests.faults.load import SECOND, Load, beats, now, tapped, wait_until
from tests.harness.account import Account, Limits, prove
from tests.harness.checker import Seen
from tests.harness.processes import Cluster
from tests.harness.rows import sql
from tests.harness.tap import Tap
from tests.harness.usage import memory
from tests.harness.wait import eventually

pytestmark = MARKS

HERD = 100_000 if SECONDS >= FULL else 2_000
SENT_WITHIN = within(30 if SECONDS >= FULL else 3)  # seconds
MOST_MEMORY = 150 * 1024  # kB that a beat may grow by


def herd_in(tap: Tap) -> list[Seen]:
    """Return what has come of the herd; rows that have just come due are sent beside it."""
    return [arrival for arrival in list(tap.arrivals) if (arrival.periodic_task or "").startswith("herd")]


def test_a_large_backlog_is_sent_soon_and_new_ticks_do_not_wait_behind_it(
    cluster: Cluster, note: Callable[[str], None]
) -> None:
    running = beats(cluster, 2)
    before = [memory(beat.pid, "VmHWM") for beat in running]
    with tapped(cluster) as tap:
        names = [f"herd-{number}" for number in range(HERD)]
        begun = now(cluster.database)
        sql(
            cluster.database,
            "insert into pgbeat.periodic_task (name, task, args, schedule, next_run_at) "
            "select name, 'app.probe', jsonb_build_array(name), 'every 1d', now() + '1 day' "
            "from unnest(%(names)s::text[]) name",
            names=names,
        )
        fresh = Load(cluster, 100, name="fresh")
        due_at = fresh.first + 2 * SECOND + 3 * (fresh.first - begun)  # as long as writing them once more may take
        sql(
            cluster.database,
            "update pgbeat.periodic_task set next_run_at = %(at)s where name = any (%(names)s)",
            names=names,
            at=due_at,
        )
        assert now(cluster.database) < due_at, "the herd was not there in time"
        wait_until(cluster.database, due_at)
        eventually(lambda: len(herd_in(tap)) >= HERD, 4 * SENT_WITHIN, "the herd", every=1)
        beside = fresh.settle(tap)

    herd = Account([(name, due_at) for name in names], herd_in(tap))
    grown = max(memory(beat.pid, "VmHWM") - most for beat, most in zip(running, before, strict=True))
    note(f"herd: {herd}; fresh: {beside}; each beat grew by {grown // 1024} MB at most")
    prove(herd, Limits(late={100: SENT_WITHIN}))
    prove(beside, Limits(late={99: within(1)}))
    assert grown <= MOST_MEMORY
