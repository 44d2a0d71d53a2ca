"""The next version is rolled out under load, node by node: nothing is lost or doubled, no process ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from celery_pgbeat import __version__
from celery_pgbeat.postgres.migrate import MIN_COMPATIBLE, latest
from tests.faults.conftest import Proof
from tests.faults.lengths import LEASE, MARKS, SECONDS, within
from tests.faults.load import INBOX, SECOND, Load, now, sent_by, tapped, wait_until, working
from tests.harness.account import Limits
from tests.harness.next_version import NEXT, next_version
from tests.harness.processes import Beat, Cluster, Node, Worker
from tests.harness.rows import sql
from tests.harness.tap import Tap

pytestmark = MARKS

ROWS = 30
HEARTBEAT = 1  # seconds
SETTINGS = {"pgbeat_lease": LEASE, "pgbeat_heartbeat": HEARTBEAT}
TOO_OLD = "upgrade celery-pgbeat on this node"
UNGUARDED = "runs unguarded"


@dataclass(frozen=True, slots=True)
class Site:
    """Two beats and a worker of one version."""

    cluster: Cluster
    beats: list[Beat]
    worker: Worker

    @property
    def nodes(self) -> list[Node]:
        """All three."""
        return [*self.beats, self.worker]

    @property
    def versions(self) -> set[str | None]:
        """The versions that its processes report."""
        said = {
            row["pid"]: row["version"] for row in sql(self.cluster.database, "select pid, version from pgbeat.node")
        }
        return {said.get(node.pid) for node in self.nodes}

    @property
    def complaints(self) -> list[str]:
        """The lines of its logs that report a problem."""
        lines = [line for node in self.nodes for line in node.log.splitlines()]
        return [line for line in lines if ": ERROR/" in line or "Traceback" in line]

    def sent(self, tap: Tap, since: datetime) -> list[int]:
        """Count what each beat has sent since."""
        return [len(sent_by(tap, beat, since)) for beat in self.beats]

    def started(self, since: datetime) -> int:
        """Count what the worker has started since."""
        runs = [run for run in self.cluster.probe.runs() if run.started_at >= since]
        return len([run for run in runs if (run.worker or "").startswith(f"{self.worker.name}@")])

    def stop(self) -> None:
        """Stop the nodes, one after the other."""
        for node in self.nodes:
            assert 0 == node.stop()


def start(cluster: Cluster, environment: dict[str, str] | None = None) -> Site:
    """Start the nodes of one version, the worker when the beats have made the schema, and wait until they work."""
    beats = [cluster.beat(environment=environment, wait=False) for _ in range(2)]
    for beat in beats:
        working(beat)
    return Site(cluster, beats, cluster.worker(environment=environment))


def schema(cluster: Cluster) -> int:
    """Return the version of the schema."""
    return sql(cluster.database, "select version from pgbeat.schema_version")[0]["version"]


def test_a_compatible_next_version_works_beside_the_old_one_until_the_old_one_is_stopped(
    cluster: Cluster, database: str, tmp_path: Path, proven: Proof, note: Callable[[str], None]
) -> None:
    """The first beats make the schema, those of the next version migrate it while the first ones work."""
    cluster.settings, cluster.database = SETTINGS, database
    environment = next_version(tmp_path / "next", MIN_COMPATIBLE)
    old = start(cluster)
    schemas = [schema(cluster)]
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        load.runs_for(1)
        new = start(cluster, environment)
        schemas.append(schema(cluster))
        together = now(load.url)
        wait_until(load.url, together + SECONDS * SECOND)
        sites = [(site.versions, site.sent(tap, together), site.started(together)) for site in (old, new)]
        old.stop()
        alone = now(load.url)
        wait_until(load.url, alone + 2 * SECOND)
        account = load.settle(tap, started=True)

    note(f"side by side, sent and started: {sites}")
    proven(account, Limits(late={100: within(1.5)}))
    assert [] == account.recorded
    assert [latest(), latest() + 1] == schemas
    assert [{__version__}, {NEXT}] == [versions for versions, _, _ in sites]
    assert all(all(sent) and started for _, sent, started in sites)
    assert [] == [*old.complaints, *new.complaints]
    assert all(node.is_running() for node in new.nodes)


def test_after_an_incompatible_migration_the_old_beats_send_nothing_and_log_why(
    cluster: Cluster, tmp_path: Path, proven: Proof, note: Callable[[str], None]
) -> None:
    cluster.settings = SETTINGS
    environment = next_version(tmp_path / "next", latest() + 1)
    old = start(cluster)
    with tapped(cluster, INBOX, onward="celery") as tap:
        load = Load(cluster, ROWS, queue=f"'{INBOX}'")
        load.runs_for(1)
        outdated = now(load.url)
        new = start(cluster, environment)
        for beat in old.beats:
            beat.wait_for_log(TOO_OLD, within(HEARTBEAT + 1))
        noticed = now(load.url)
        assert 0 == old.worker.stop()
        old.worker.start()
        restarted = now(load.url)
        wait_until(load.url, restarted + SECONDS * SECOND)
        sites = [(site.versions, site.sent(tap, noticed + SECOND), site.started(restarted)) for site in (old, new)]
        running = [node.is_running() for node in cluster.nodes]
        account = load.settle(tap, started=True)
        reminders = 1 + (now(load.url) - outdated) // timedelta(minutes=1)
        old.stop()

    note(f"after the notice, sent and started: {sites}")
    proven(account, Limits(late={100: within(1.5)}))
    assert [] == account.recorded
    assert [{__version__}, {NEXT}] == [versions for versions, _, _ in sites]
    assert [0, 0] == sites[0][1]
    assert all(sites[1][1])
    assert all(started for _, _, started in sites)
    assert all(running)
    assert [] == [line for line in old.complaints if TOO_OLD not in line]
    assert all(1 <= beat.log.count(TOO_OLD) <= reminders for beat in old.beats)
    # An idle beat writes no heartbeat: after dead_after the others log that, and they are right.
    assert [] == [line for line in new.complaints if "A beat is dead" not in line]
    assert UNGUARDED in old.worker.log
