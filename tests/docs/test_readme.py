"""The claims of the README: the schedule in Python equals the one in SQL, and the apps that it shows run."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from tests.docs.pages import ROOT, blocks
from tests.docs.run_page import WRITTEN
from tests.harness.processes import Cluster
from tests.harness.rows import row, sql
from tests.harness.wait import eventually

README = ROOT / "README.md"
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


def app(number: int, cluster: Cluster, folder: Path) -> dict[str, str]:
    """Write one of the README's Python blocks as shop.py, and return the environment in which it is found."""
    python = [block.text for block in blocks(README) if block.language == "python"]
    text = python[number]
    for url, variable in WRITTEN.items():
        text = text.replace(url, {"PGBEAT_URL": cluster.database, "CELERY_BROKER_URL": cluster.broker}[variable])
    (folder / "shop.py").write_text(text)
    return {"PYTHONPATH": str(folder)}


def definition(url: str) -> dict[str, Any]:
    stored = row(url, "nightly-report")
    return {column: stored[column] for column in DEFINITION}


@pytest.mark.slow
def test_the_schedule_in_python_and_the_one_in_sql_are_the_same_row(cluster: Cluster, tmp_path: Path) -> None:
    beat = cluster.beat(app="shop", environment=app(0, cluster, tmp_path))
    beat.wait_for_log("Declared 'nightly-report'", 20)
    by_python = definition(cluster.database)
    beat.stop()
    sql(cluster.database, "delete from pgbeat.periodic_task")

    insert = next(block.text for block in blocks(README) if block.language == "sql")
    with closing(psycopg2.connect(cluster.database)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(insert)

    assert by_python == definition(cluster.database)


@pytest.mark.slow
def test_an_app_by_configuration_alone_has_a_beat_and_a_guarded_worker(cluster: Cluster, tmp_path: Path) -> None:
    variables = app(1, cluster, tmp_path)
    beat = cluster.beat(app="shop", environment=variables)
    cluster.worker(app="shop", environment=variables)

    beat.wait_for_log("works on", 20)
    eventually(
        lambda: sql(cluster.database, "select 1 from pgbeat.node where role = 'worker' and tracking"),
        20,
        "a worker that announces the tracker",
    )
