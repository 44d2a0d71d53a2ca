"""The claims of the README: its schedule in Python equals the one in SQL, and the demo prints what it quotes.

An app by configuration alone, as the page of the settings shows it, runs too.
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg2

from celery_pgbeat.cli.demo.process import DemoProcess
from celery_pgbeat.cli.demo.proof import Proof
from celery_pgbeat.cli.demo.queries import InFlight
from celery_pgbeat.cli.demo.scenario import DemoFault
from tests.docs.pages import ROOT, blocks
from tests.docs.run_page import WRITTEN
from tests.harness.processes import Cluster
from tests.harness.rows import row, sql
from tests.harness.wait import eventually

README = ROOT / "README.md"
SETTINGS = ROOT / "docs" / "settings.md"
DEFINITION = (
    "task",
    "args",
    "kwargs",
    "schedule",
    "timezone",
    "overlap",
    "catchup",
    "max_run_time",
    "on_lost",
    "tracking",
)


def app(text: str, cluster: Cluster, folder: Path) -> dict[str, str]:
    """Write the code of a page as shop.py, and return the environment in which it is found."""
    for url, variable in WRITTEN.items():
        text = text.replace(url, {"PGBEAT_URL": cluster.database, "CELERY_BROKER_URL": cluster.broker}[variable])
    (folder / "shop.py").write_text(text)
    return {"PYTHONPATH": str(folder)}


def code(page: Path, language: str) -> list[str]:
    return [block.text for block in blocks(page) if block.language == language]


def definition(url: str) -> dict[str, Any]:
    stored = row(url, "nightly-report")
    return {column: stored[column] for column in DEFINITION}


def test_the_schedule_in_python_and_the_one_in_sql_are_the_same_row(cluster: Cluster, tmp_path: Path) -> None:
    (python,) = code(README, "python")
    beat = cluster.beat(app="shop", environment=app(python, cluster, tmp_path))
    beat.wait_for_log("Declared 'nightly-report'", 20)
    by_python = definition(cluster.database)
    beat.stop()
    sql(cluster.database, "delete from pgbeat.periodic_task")

    (insert,) = code(README, "sql")
    with closing(psycopg2.connect(cluster.database)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(insert)

    assert by_python == definition(cluster.database)


def test_an_app_by_configuration_alone_has_a_beat_and_a_guarded_worker(cluster: Cluster, tmp_path: Path) -> None:
    (configuration,) = [text for text in code(SETTINGS, "python") if "beat_scheduler=" in text]
    made = 'from celery import Celery\n\napp = Celery("shop", broker="redis://localhost")\n'
    variables = app(made + configuration, cluster, tmp_path)
    beat = cluster.beat(app="shop", environment=variables)
    cluster.worker(app="shop", environment=variables)

    beat.wait_for_log("works on", 20)
    eventually(
        lambda: sql(cluster.database, "select 1 from pgbeat.node where role = 'worker' and tracking"),
        20,
        "a worker that announces the tracker",
    )


def test_the_lines_of_the_demo_are_those_that_it_prints() -> None:
    _, taken_over, sent, verdict = code(README, "")[0].splitlines()
    due = int(re.findall(r"each of the (\d+) ticks", verdict)[0])
    by = {beat: int(number) for beat, number in re.findall(r"(beat-\d) (\d+)", sent)}
    at = datetime(2026, 12, 7, tzinfo=timezone.utc)
    proof = Proof(at, at, due, sum(by.values()), 6, by, {}, 0, [], [], [], [])
    fault = DemoFault(cast(DemoProcess, SimpleNamespace(name="beat-3")), InFlight((), ()), at, 3)

    assert {sent, verdict} <= set(proof.lines())
    assert taken_over.endswith(fault.ended([(at + timedelta(seconds=2.9), 2)], lambda pid: f"beat-{pid}"))
