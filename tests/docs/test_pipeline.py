"""The example of a pipeline runs with two beats and a worker, and its README from top to bottom."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from celery_pgbeat import PgBeat
from tests.docs.pages import ROOT, blocks
from tests.harness.processes import Cluster
from tests.harness.rows import jobs
from tests.harness.wait import eventually

EXAMPLE = ROOT / "examples" / "pipeline"
README = EXAMPLE / "README.md"
STEPS = ("extract", "total", "count", "load", "sign-off", "publish")
BEFORE = (  # what must have ended, and what comes after it
    ("extract", "total"),
    ("extract", "count"),
    ("total", "load"),
    ("count", "load"),
    ("load", "sign-off"),
    ("sign-off", "publish"),
)
PUBLISHED = "3 orders of 2 customers: 37.50 euros\n"
# The ids that the README shows.
OF_SIGN_OFF = "0655d91e-7f45-58b7-84ae-80786dcaced4"
OF_LOAD = "ce8d7b60"
OF_TOTAL = "b7ff152a-f4fa-547b-b278-648a1d8e4a05"


class Project:
    """A copy of the example, of which two beats and a worker run."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("data", "*.log", "__pycache__"))
        self.folder = folder
        self.data = folder / "data"
        self.published = self.data / "published.txt"
        self.variables = {
            "PYTHONPATH": str(folder),
            "PGBEAT_URL": cluster.database,
            "CELERY_BROKER_URL": cluster.broker,
            "COLUMNS": "200",
        }
        self._cluster = cluster

    def start(self) -> None:
        """Start the processes."""
        self._cluster.worker(app="pipeline", environment=self.variables)
        for _ in range(2):
            self._cluster.beat(app="pipeline", environment=self.variables, wait=False)

    def attempt(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line as somebody types it in the folder of the example."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}
        return subprocess.run(
            ["sh", "-c", line],
            env={**clean, **self.variables, "PATH": path},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def type(self, line: str) -> str:
        """Run a line; return what it prints."""
        done = self.attempt(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, block: str, ids: Mapping[str, Any]) -> str:
        """Run the lines of a block of the README, with these ids in place of those that it shows; return the output."""
        for shown, real in ids.items():
            assert shown in block
            block = block.replace(shown, str(real))
        return "".join(map(self.type, block.splitlines()))

    def jobs(self, name: str) -> list[dict[str, Any]]:
        """Return the jobs of a periodic task, in the order in which they were made."""
        return sorted(jobs(self._cluster.database, name), key=lambda job: job["created_at"])

    def states(self, name: str) -> list[str]:
        """Return the states of these jobs."""
        return [job["state"] for job in self.jobs(name)]

    def wait_for(self, name: str, *states: str) -> list[dict[str, Any]]:
        """Wait until the jobs of a periodic task are in these states, and return them."""
        eventually(lambda: self.states(name) == list(states), 60, f"{name} is {', '.join(states)}")
        return self.jobs(name)


@pytest.fixture
def project(cluster: Cluster, tmp_path: Path) -> Project:
    return Project(cluster, tmp_path / "pipeline")


def test_a_scheduled_round_runs_in_order_and_waits_for_the_person(cluster: Cluster, project: Project) -> None:
    project.start()
    assert project.type("python pipeline.py") == f"Defined {', '.join(STEPS)}\n"
    with closing(PgBeat(url=cluster.database)) as beat:
        beat.update("extract", schedule="every 2s", max_runs=1)
        (work,) = eventually(lambda: beat.my_work("ann", ["editors"]), 60, "the task for a person is open")
        assert ("sign-off", "created", ["editors"]) == (work.periodic_task, work.state, work.target)
        assert [] == beat.my_work("bob", ["authors"])
        beat.pick_up(work.id, "ann", ["editors"])
        assert [] == project.jobs("publish")
        assert not project.published.exists()
        beat.finish(work.id, "succeeded", "looks right", owner="ann")
        project.wait_for("publish", "succeeded")

    assert PUBLISHED == project.published.read_text()
    assert dict.fromkeys(STEPS, 1) == {name: len(project.jobs(name)) for name in STEPS}
    of = {name: project.jobs(name)[0] for name in STEPS}
    assert {"succeeded"} == {job["state"] for job in of.values()}
    assert {"schedule"} == {job["origin"] for job in of.values()}
    assert {of["extract"]["scheduled_for"]} == {job["scheduled_for"] for job in of.values()}
    assert [] == [pair for pair in BEFORE if of[pair[0]]["finished_at"] > of[pair[1]]["started_at"]]
    assert of["load"]["finished_at"] <= of["sign-off"]["created_at"]
    assert of["sign-off"]["finished_at"] <= of["publish"]["created_at"]

    (round_,) = project.data.glob("*/")
    assert {"raw.json", "total.json", "count.json", "report.json"} == {each.name for each in round_.iterdir()}
    written = {each.stem: each.stat().st_mtime_ns for each in (*round_.iterdir(), project.published)}
    assert written["raw"] <= min(written["total"], written["count"])
    assert max(written["total"], written["count"]) <= written["report"] <= written["published"]


@pytest.mark.timeout(400)  # some thirty commands, each a process of its own
def test_the_readme_runs_from_top_to_bottom_with_its_failure_and_its_repair(project: Project) -> None:
    start, run, sign, fail, repair = [block.text for block in blocks(README) if block.language == "sh"]
    set_up = [line for line in start.splitlines() if line.startswith(("celery-pgbeat migrate", "python pipeline.py"))]
    project.follow("\n".join(set_up), {})
    project.start()
    eventually(lambda: project.type("celery-pgbeat nodes").count("alive") == 3, 60, "the beats and the worker")

    trigger, rest = run.split("\n", 1)
    project.type(trigger)
    (open_,) = project.wait_for("sign-off", "created")
    shown = project.follow(rest, {})
    assert "'publish' is not running: it runs when 'sign-off' (created, after other tasks) has ended for" in shown
    assert not project.published.exists()
    *work, cat = sign.splitlines()
    project.follow("\n".join(work), {OF_SIGN_OFF: open_["id"]})
    project.wait_for("publish", "succeeded")
    assert PUBLISHED == project.type(cat)

    project.published.unlink()
    *break_, list_ = fail.splitlines()
    project.follow("\n".join(break_), {})
    (*_, skipped) = project.wait_for("publish", "succeeded", "skipped")
    assert 3 == project.type(list_).count("skipped (after)")
    failed, loaded, signed = (project.jobs(name)[1] for name in ("total", "load", "sign-off"))
    assert ["succeeded", "succeeded"] == project.states("count")
    assert [("failed", None), *[("skipped", "after")] * 3] == [
        (job["state"], job["reason"]) for job in (failed, loaded, signed, skipped)
    ]
    assert [failed["id"], loaded["id"], signed["id"]] == [job["blocked_by"] for job in (loaded, signed, skipped)]
    assert 1 == len({job["scheduled_for"] for job in (failed, loaded, signed, skipped)})
    assert f"{OF_LOAD}`" in README.read_text(encoding="utf-8")
    assert f"blocked by     {failed['id']}" in project.type(f"celery-pgbeat job {loaded['id']}")

    project.follow(repair, {OF_TOTAL: failed["id"]})
    *_, open_ = project.wait_for("sign-off", "succeeded", "skipped", "created")
    assert ["succeeded", "skipped", "succeeded"] == project.states("load")  # none between: only the trigger has run it
    assert not project.published.exists()
    project.follow("\n".join(work), {OF_SIGN_OFF: open_["id"]})
    project.wait_for("publish", "succeeded", "skipped", "succeeded")
    assert PUBLISHED == project.type(cat)
