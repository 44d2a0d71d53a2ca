"""Our beats in shadow beside Celery's own beat, which sends: real processes, one broker, one app."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from celery_pgbeat.cli import main
from tests.harness.processes import Beat, Cluster
from tests.harness.rows import jobs
from tests.harness.wait import eventually

APP = "tests.harness.peers.shadow_app"
STOCK = ("-S", "celery.beat:PersistentScheduler")
SECONDS = float(os.environ.get("PGBEAT_TEST_SHADOW", "16"))  # how long they run beside each other, at least
LEAST = round(SECONDS / 2)  # runs of the entry that runs each 2 seconds
PATIENCE = 20 + 1.5 * SECONDS  # seconds until they are over
pytestmark = pytest.mark.timeout(240 + 2 * SECONDS)


class Beside:
    """Celery's beat and some of ours in shadow."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.sent = folder / "sent.jsonl"

    def start(self, **environment: str) -> Beat:
        """Start two beats in shadow, with these variables, then Celery's beat; return the latter."""
        for _ in range(2):
            self.cluster.beat(app=APP, settings={"pgbeat_shadow": True}, environment=environment)
        eventually(lambda: "each 3 seconds" in self.recorded(), 20, "the first record of ours")
        arguments = (*STOCK, "-s", str(self.folder / "stock"))
        return self.cluster.beat(app=APP, arguments=arguments, environment={"SENT": str(self.sent)})

    def compare(self, *words: str, source: Path | None = None) -> Result:
        """Run `compare` on what Celery's beat has recorded, or on another file."""
        line = ["compare", str(source or self.sent), "--within", "2", *words]
        return CliRunner().invoke(main, line, env={"PGBEAT_URL": self.cluster.database})

    def rows(self) -> dict[str, Any]:
        """Return the rows of the comparison by name."""
        return {row["name"]: row for row in json.loads(self.compare("--json").stdout)["rows"]}

    def recorded(self) -> set[str]:
        """Return which rows have a record."""
        return {job["periodic_task"] for job in jobs(self.cluster.database)}

    def sent_of(self, name: str) -> int:
        """Return how often Celery's beat has sent an entry."""
        return self.sent.read_text().count(json.dumps(name)) if self.sent.exists() else 0


@pytest.fixture
def beside(cluster: Cluster, tmp_path: Path) -> Iterator[Beside]:
    return Beside(cluster, tmp_path)


def test_a_shadow_records_what_celerys_beat_sends_and_sends_nothing(beside: Beside) -> None:
    beside.cluster.worker()
    stock = beside.start()
    eventually(lambda: beside.sent_of("each minute"), 70, "the next minute")
    minute = beside.sent_of("each 3 seconds")
    eventually(lambda: beside.sent_of("each 3 seconds") >= minute + 3, 20, "the minute is over, as far as one compares")
    eventually(lambda: beside.sent_of("each 2 seconds") >= LEAST, PATIENCE, "enough runs")

    done = beside.compare()
    by_log = beside.compare(source=beside.folder / f"{stock.name}.log")

    assert 0 == done.exit_code, done.output
    assert 0 == by_log.exit_code, by_log.output
    compared = beside.rows()
    assert compared["each minute"]["both"] >= 1
    assert compared["each 2 seconds"]["both"] >= LEAST - 2
    assert {("skipped", "shadow")} == {(job["state"], job["reason"]) for job in jobs(beside.cluster.database)}
    runs = beside.cluster.probe.runs()
    assert runs
    assert {None} == {run.periodic_task for run in runs}, "only Celery's beat has sent anything"


def test_another_period_and_a_missing_entry_are_found(beside: Beside) -> None:
    beside.start(OTHERWISE="1")
    eventually(lambda: beside.sent_of("each 2 seconds") >= LEAST, PATIENCE, "enough runs")
    eventually(lambda: beside.rows()["each 2 seconds"]["only_theirs"], 30, "the other period is found", every=1.0)
    found = beside.compare()

    assert 1 == found.exit_code, found.output
    compared = beside.rows()
    assert compared["each second"]["only_theirs"]
    assert not compared["each second"]["both"]
    assert compared["another"]["only_ours"]
    equal = compared["each 3 seconds"]
    assert [] == [*equal["only_theirs"], *equal["only_ours"]]
