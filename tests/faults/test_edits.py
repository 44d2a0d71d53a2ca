"""SQL edits all the time, under load: each message has one version, paused rows and removed rows send nothing."""

from __future__ import annotations

import itertools
import json
import random
from contextlib import closing
from datetime import datetime
from typing import Any

import psycopg2

from tests.faults.conftest import Proof
from tests.faults.lengths import LEASE, MARKS, SECONDS, part, within
from tests.faults.load import SECOND, Load, beats, now, paced, tapped, wait_until
from tests.harness.account import Limits
from tests.harness.processes import Cluster
from tests.harness.rows import jobs
from tests.harness.wait import eventually

pytestmark = MARKS

EDITS = part(200, least=50)  # a second; many keep two processors busy
HELD = within(1) + 1  # seconds that each pause lasts; nothing may come when within(1) of it are over
ROWS = 20

VERSION = (
    "update pgbeat.periodic_task set args = %(args)s, kwargs = %(kwargs)s, options = %(options)s where name = %(name)s"
)
SWITCH = (
    "update pgbeat.periodic_task set enabled = not enabled where name = %(name)s "
    "returning enabled, clock_timestamp() as at"
)


class Editor:
    """A client that gives rows new versions, and pauses and resumes others."""

    def __init__(self, connection: Any) -> None:
        connection.autocommit = True
        self._cursor = connection.cursor()
        self._paused: dict[str, datetime] = {}
        self.pauses: list[tuple[str, datetime, datetime]] = []  # row, from, until

    def change(self, name: str, version: int) -> None:
        """Write a version into all columns that make the message."""
        self._cursor.execute(VERSION, {"name": name, **columns(version)})

    def switch(self, name: str) -> None:
        """Pause a row, or resume it."""
        self._cursor.execute(SWITCH, {"name": name})
        enabled, at = self._cursor.fetchone()
        if enabled:
            self.pauses.append((name, self._paused.pop(name), at))
        else:
            self._paused[name] = at


def columns(version: int) -> dict[str, str]:
    """Return the columns of a version, which is in each of them."""
    return {
        "args": json.dumps([version]),
        "kwargs": json.dumps({"version": version}),
        "options": json.dumps({"headers": {"version": version}}),
    }


def test_under_many_edits_a_second_no_message_mixes_two_versions_and_paused_rows_stay_paused(
    cluster: Cluster, proven: Proof
) -> None:
    running = beats(cluster, 2)
    with tapped(cluster) as tap, closing(psycopg2.connect(cluster.database)) as connection:
        literals: dict[str, Any] = {column: f"'{value}'" for column, value in columns(0).items()}
        edited = Load(cluster, 3 * ROWS, name="edited", task="'elsewhere.task'", **literals)
        paused = Load(cluster, ROWS, name="paused")
        editor, names = Editor(connection), itertools.cycle(paused.names)
        edited.runs_for(1)
        seen = "each has come once"
        eventually(lambda: set(paused.names) <= {arrival.periodic_task for arrival in list(tap.arrivals)}, 20, seen)
        for number in paced(max(SECONDS, 2 * HELD + 1), every=1 / EDITS):
            if number % (EDITS * HELD / ROWS) < 1:
                editor.switch(next(names))
            else:
                editor.change(random.choice(edited.names), number)
        account = edited.settle(tap)

    proven(account, Limits())
    sent = [arrival for arrival in tap.arrivals if arrival.kwargs]
    mixed = [each for each in sent if not each.args[0] == each.kwargs["version"] == each.headers["version"]]
    assert [] == mixed
    assert len({arrival.kwargs["version"] for arrival in sent}) > ROWS
    for name, paused_at, resumed_at in editor.pauses:
        came = [arrival.seen_at for arrival in tap.arrivals if arrival.periodic_task == name]
        assert [] == [at for at in came if paused_at + within(1) * SECOND < at < resumed_at]
        assert [] != [at for at in came if at < paused_at]
    assert [] == [beat for beat in running if "ERROR" in beat.log]


def test_rows_that_are_removed_at_any_moment_are_not_sent_again_and_delay_no_other_row(
    cluster: Cluster, proven: Proof
) -> None:
    running = beats(cluster, 2)
    removed: dict[str, datetime] = {}
    with tapped(cluster) as tap, closing(psycopg2.connect(cluster.database)) as connection:
        connection.autocommit = True
        kept, doomed = Load(cluster, ROWS, name="kept"), Load(cluster, 5 * ROWS, name="doomed")
        doomed.runs_for(1)
        cursor = connection.cursor()
        for number in paced(SECONDS, every=SECONDS / len(doomed.names)):
            name = doomed.names[number]
            cursor.execute("delete from pgbeat.periodic_task where name = %s returning clock_timestamp()", (name,))
            (removed[name],) = cursor.fetchone()
        wait_until(cluster.database, now(cluster.database) + (within(1) + 1) * SECOND)
        account = kept.settle(tap)

    proven(account, Limits(late={99: within(1)}))
    assert len(removed.keys() & {arrival.periodic_task for arrival in tap.arrivals}) > ROWS
    late = [
        arrival
        for arrival in tap.arrivals
        if arrival.periodic_task in removed and arrival.seen_at > removed[arrival.periodic_task] + within(1) * SECOND
    ]
    assert [] == late
    assert {arrival.job for arrival in tap.arrivals} <= {job["id"] for job in jobs(cluster.database)}
    assert [] == [beat for beat in running if "ERROR" in beat.log]


def test_a_transaction_that_stays_open_delays_its_own_row_and_no_other(cluster: Cluster, proven: Proof) -> None:
    cluster.settings = {"pgbeat_lease": LEASE}
    running = beats(cluster, 2)
    with tapped(cluster) as tap, closing(psycopg2.connect(cluster.database)) as author:
        others, held = Load(cluster, 3 * ROWS), Load(cluster, 1, name="held", catchup="'all'")
        held.runs_for(2)
        author.cursor().execute("update pgbeat.periodic_task set args = '[1]' where name = 'held-0001'")
        held_at = now(cluster.database)
        wait_until(cluster.database, held_at + max(SECONDS, 3 * LEASE) * SECOND)
        freed_at = now(cluster.database)
        author.commit()
        accounts = [load.settle(tap) for load in (held, others)]

    proven(accounts[0], Limits())
    proven(accounts[1], Limits(late={100: within(1)}))
    arrivals = [arrival for arrival in tap.arrivals if arrival.periodic_task == "held-0001"]
    assert [] == [arrival for arrival in arrivals if held_at + within(1) * SECOND < arrival.seen_at < freed_at]
    assert {(1,)} == {tuple(arrival.args) for arrival in arrivals if arrival.seen_at > freed_at}
    assert [] == [beat for beat in running if "ERROR" in beat.log]
