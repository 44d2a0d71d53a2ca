"""From a beat that sends 50 entries each second to ours, under load: no run is lost, and none is sent twice."""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from celery_pgbeat.cli import main
from celery_pgbeat.moving.readers.sent_lines import sent_in
from tests.harness.peers.entries import EACH_SECOND
from tests.harness.peers.run_peer import run_peer
from tests.harness.processes import Beat, Cluster
from tests.harness.rows import jobs, sql
from tests.harness.wait import eventually

SECOND = timedelta(seconds=1)
ROUNDS = 3  # runs of each entry by each scheduler, at least


class CutOver:
    """The old beat, and ours."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.sent = folder / "sent.jsonl"

    def run(self, app: str, scheduler: str, stop_and_import: Callable[[Callable[[], None]], Result]) -> None:
        """Start the old beat, wait, move over, start two beats of ours, wait, and stop all."""
        cluster = self.cluster
        worker = cluster.worker(concurrency=2)
        old = cluster.beat(app=app, arguments=("-S", scheduler), environment={"SENT": str(self.sent)})
        eventually(lambda: self._least(self.theirs()) >= ROUNDS, 60, "some runs of the old beat")
        done = stop_and_import(lambda: stopped(old))
        assert 0 == done.exit_code, done.output
        for _ in range(2):
            cluster.beat(wait=False)
        eventually(lambda: self._least(self.ours()) >= ROUNDS, 60, "some runs of ours")
        sql(cluster.database, "update pgbeat.periodic_task set enabled = false")
        eventually(lambda: {job["state"] for job in jobs(cluster.database)} <= {"succeeded", "skipped"}, 90, "the rest")
        theirs = sum(map(len, self.theirs().values())) - self.sent.read_text().count('"interrupted"')
        eventually(lambda: len(self._without_header()) >= theirs, 60, "what the old beat has sent")
        assert worker.is_running()

    def theirs(self) -> dict[str, list[datetime]]:
        """Return when the old beat has sent each entry."""
        has_begun = self.sent.exists() and self.sent.stat().st_size  # its first line is written after it is opened
        return sent_in([str(self.sent)], None).instants if has_begun else {}

    def ours(self) -> dict[str, list[datetime]]:
        """Return the occurrences of each row that have run, by the record of the tasks."""
        found = defaultdict(list)
        for run in self.cluster.probe.runs():
            if run.scheduled_for is not None:
                found[run.label].append(run.scheduled_for)
        return {name: sorted(some) for name, some in found.items()}

    def checked(self) -> None:
        """Check that each entry ran once in each second, through the change."""
        theirs, ours, ran = self.theirs(), self.ours(), Counter(self._without_header())
        interrupted = self.sent.read_text().count('"interrupted"')  # by the signal: the broker may have it or not
        assert 0 <= sum(len(some) - ran[name] for name, some in theirs.items()) <= interrupted
        assert all(len(some) >= ran[name] for name, some in theirs.items())
        assert set(EACH_SECOND) == set(theirs) == set(ours)
        for name in EACH_SECOND:
            assert SECOND / 2 < ours[name][0] - theirs[name][-1] < SECOND * 1.5, (name, "at the change")
            assert {SECOND} == {later - earlier for earlier, later in pairwise(ours[name])}, (name, "among ours")

    def _without_header(self) -> list[str]:
        return [run.label for run in self.cluster.probe.runs() if run.scheduled_for is None]

    def _least(self, found: dict[str, list[datetime]]) -> int:
        return min(len(found.get(name, ())) for name in EACH_SECOND)


def stopped(old: Beat) -> None:
    """Stop the old beat. Celery's beat sometimes survives a SIGTERM that interrupts it in the middle of a statement."""

    def is_gone() -> bool:
        if old.is_running():
            old.signal(signal.SIGTERM)
        return not old.is_running()

    eventually(is_gone, 60, "the old beat has ended", every=5.0)
    old.end()


def imported(cluster: Cluster, *words: str) -> Result:
    line = ["import", "--from", *words, "--apply", "--yes", "--make-up"]
    return CliRunner().invoke(main, line, env={"PGBEAT_URL": cluster.database})


@pytest.fixture
def cut_over(cluster: Cluster, tmp_path: Path) -> CutOver:
    return CutOver(cluster, tmp_path)


def test_from_django_celery_beat_under_load(cut_over: CutOver) -> None:
    cluster = cut_over.cluster
    run_peer("django_peer", "seconds", cluster.database)

    def move(stop: Callable[[], None]) -> Result:
        stop()
        return imported(cluster, "django-celery-beat", "--cut-over")

    scheduler = "django_celery_beat.schedulers:DatabaseScheduler"
    cut_over.run("tests.harness.peers.django_beat", scheduler, move)
    cut_over.checked()
    assert [(0,)] == [
        tuple(row.values())
        for row in sql(cluster.database, "select count(*) from django_celery_beat_periodictask where enabled")
    ]


def test_from_redbeat_under_load(cut_over: CutOver) -> None:
    cluster = cut_over.cluster
    run_peer("redbeat_peer", "seconds", cluster.broker)

    def move(stop: Callable[[], None]) -> Result:
        stop()
        return imported(cluster, "redbeat", cluster.broker)

    cut_over.run("tests.harness.peers.redbeat_beat", "redbeat.RedBeatScheduler", move)
    cut_over.checked()
