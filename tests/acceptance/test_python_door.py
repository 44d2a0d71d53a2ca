"""The Python API with real processes: tasks declared in Python run in workers, and only once they are committed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import psycopg2
import pytest

from celery_pgbeat import PgBeat
from tests.harness.cost import slowness
from tests.harness.processes import Cluster
from tests.harness.rows import jobs, row, sql
from tests.harness.wait import eventually

DECORATED = """
from datetime import timedelta
import os
import time
from celery import Celery
from celery.beat import BeatLazyFunc
from celery_pgbeat import PgBeat, every
from tests.harness import probe

app = Celery("decorated", broker=os.environ["PROBE_BROKER"])
beat = PgBeat(app)

def record(task, label):
    header = task.request.get("pgbeat")
    values = dict(job=task.request.id, periodic_task=header["periodic_task"], label=label, origin=header["origin"],
                  scheduled_for=header["scheduled_for"], attempt=0, pid=os.getpid(), worker=task.request.hostname)
    probe.begin(os.environ["PROBE_DATABASE"], values)

@beat.periodic_task(every(1), args=["above"])
@app.task(bind=True, name="above")
def above(self, label):
    record(self, label)

@app.task(bind=True, name="below")
@beat.periodic_task(every(1), name="under-its-own-name", kwargs={"label": "below"})
def below(self, label):
    record(self, label)

@beat.periodic_task(every(1), args=[BeatLazyFunc(lambda: f"lazy-{time.monotonic()}")])
@app.task(bind=True, name="lazy")
def lazy(self, label):
    record(self, label)
"""


@pytest.fixture
def decorated(tmp_path: Path) -> str:
    """The name of a module with decorated tasks, importable by the cluster's processes."""
    (tmp_path / "decorated.py").write_text(DECORATED)
    return "decorated"


def test_decorated_tasks_run_guarded_and_tracked_with_nothing_else_configured(cluster: Cluster, decorated: str) -> None:
    cluster.beat(app=decorated)
    cluster.worker(app=decorated)

    for label, name in {"above": "above", "below": "under-its-own-name"}.items():
        eventually(lambda label=label: len(cluster.probe.runs(label)) >= 2, 20, f"{label} runs")
        assert {name} == {run.periodic_task for run in cluster.probe.runs(label)}
        eventually(lambda name=name: jobs(cluster.database, name)[0]["state"] == "succeeded", 10, "its end is recorded")


def test_a_lazy_argument_is_evaluated_for_each_message(cluster: Cluster, decorated: str) -> None:
    cluster.beat(app=decorated)
    cluster.worker(app=decorated)

    def labels() -> list[str]:
        return [run.label for run in cluster.probe.runs() if run.periodic_task == "lazy"]

    eventually(lambda: len(labels()) >= 2, 20, "two runs")
    assert len(set(labels())) == len(labels())
    assert all(label.startswith("lazy-") for label in labels())
    assert row(cluster.database, "lazy")["args"] == ["<BeatLazyFunc>"]


def test_a_declaration_in_a_transaction_runs_only_if_and_when_that_commits(cluster: Cluster) -> None:
    cluster.beat().wait_for_log("works on", 20)
    door = PgBeat(url=cluster.database)
    with psycopg2.connect(cluster.database) as theirs:
        door.schedule("rolled-back", "app.probe", 1, run_on_start=True, connection=theirs)
        theirs.rollback()
        door.schedule("committed", "app.probe", 1, run_on_start=True, connection=theirs)
        # A row that is visible to all goes out meanwhile, so the beat has looked at the table since.
        door.schedule("control", "app.probe", 3600, run_on_start=True)
        eventually(lambda: jobs(cluster.database, "control"), 10, "the control is submitted")
        assert jobs(cluster.database, "committed") == []
        theirs.commit()
        (now,) = sql(cluster.database, "select now() as at")

    eventually(lambda: jobs(cluster.database, "committed"), 10, "the committed row is submitted")
    theirs.close()
    door.close()

    (first, *_) = jobs(cluster.database, "committed")
    assert first["created_at"] - now["at"] < timedelta(seconds=2 * slowness())
    assert jobs(cluster.database, "rolled-back") == []
