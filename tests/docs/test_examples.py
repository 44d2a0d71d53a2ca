"""The examples run, with real beats and workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from tests.docs.pages import ROOT
from tests.harness.processes import Cluster
from tests.harness.rows import jobs, row, sql
from tests.harness.wait import eventually

EXAMPLES = ROOT / "examples"
TOURS = ("pipeline",)  # no page explains them: the README does, and test_pipeline.py runs it
TOUR = 110  # lines
SHORT = {"PGBEAT_LEASE": "3"}  # seconds until another beat takes over from a killed one


def environment(cluster: Cluster, example: str) -> dict[str, str]:
    folder = str(EXAMPLES / example)
    return {"PYTHONPATH": folder, "PGBEAT_URL": cluster.database, "CELERY_BROKER_URL": cluster.broker, **SHORT}


def shell(variables: Mapping[str, str], *words: Any) -> str:
    """Run a command of an example's README and return what it prints."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def states(cluster: Cluster, name: str) -> list[str]:
    return [job["state"] for job in jobs(cluster.database, name)]


@pytest.mark.slow
def test_the_quickstart_runs_with_two_beats_of_which_one_is_killed(cluster: Cluster) -> None:
    variables = environment(cluster, "quickstart")
    cluster.worker(app="shop", environment=variables)
    killed = cluster.beat(app="shop", environment=variables)
    cluster.beat(app="shop", environment=variables)

    assert shell(variables, EXAMPLES / "quickstart" / "shop.py") == "greet-ada: every 5s\n"
    eventually(lambda: states(cluster, "poll-inbox").count("succeeded") >= 2, 30, "the inbox was polled twice")
    eventually(lambda: "succeeded" in states(cluster, "greet-ada"), 30, "Ada was greeted")
    killed.kill()
    before = len(states(cluster, "poll-inbox"))
    eventually(lambda: states(cluster, "poll-inbox")[before:].count("succeeded") >= 2, 40, "the other beat goes on")

    assert ("0 3 * * *", "Europe/Berlin") == (
        row(cluster.database, "nightly-report")["schedule"],
        row(cluster.database, "nightly-report")["timezone"],
    )
    listed = shell(variables, "-m", "celery", "-A", "shop", "pgbeat", "list")
    assert all(name in listed for name in ("poll-inbox", "nightly-report", "greet-ada"))
    assert "greet-ada" in shell(variables, "-m", "celery", "-A", "shop", "pgbeat", "jobs")


@pytest.mark.slow
def test_the_plain_sql_runs_as_psql_runs_it(cluster: Cluster) -> None:
    variables = environment(cluster, "plain_sql")
    text = (EXAMPLES / "plain_sql" / "schedule.sql").read_text(encoding="utf-8")
    with closing(psycopg2.connect(cluster.database)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(text)
    cluster.worker(app="shop", environment=variables)
    cluster.beat(app="shop", environment=variables)

    eventually(lambda: states(cluster, "poll-inbox").count("succeeded") >= 2, 30, "the inbox was polled twice")
    eventually(lambda: states(cluster, "month-end") == ["succeeded"], 30, "the triggered report")

    planned = sql(
        cluster.database,
        "select name from pgbeat.periodic_task "
        "where managed_by = 'sql' and next_run_at is not null and problem is null order by name",
    )
    assert ["hourly-report", "month-end", "new-year-report", "nightly-report", "poll-inbox"] == [
        each["name"] for each in planned
    ]
    paused = row(cluster.database, "weekday-report")
    assert (False, "holidays") == (paused["enabled"], paused["pause_reason"])


@pytest.mark.slow
def test_the_django_project_runs_with_a_reminder_that_is_committed_with_its_order(cluster: Cluster) -> None:
    variables = {**environment(cluster, "django"), "DATABASE_URL": cluster.database}
    manage = EXAMPLES / "django" / "manage.py"
    shell(variables, manage, "migrate")
    cluster.worker(app="shop", environment=variables)
    cluster.beat(app="shop", environment=variables)

    shell(variables, manage, "shell", "-c", "from shop.orders import place_order; place_order('ada@example.com')")
    shell(variables, "-m", "celery", "-A", "shop", "pgbeat", "trigger", "remind-1")
    eventually(lambda: states(cluster, "remind-1") == ["succeeded"], 30, "Ada was reminded")
    eventually(lambda: "succeeded" in states(cluster, "poll-inbox"), 30, "the inbox was polled")

    assert "Europe/Berlin" == row(cluster.database, "nightly-report")["timezone"]
    assert "remind-1" in shell(variables, "-m", "celery", "-A", "shop", "pgbeat", "list")


@pytest.mark.slow
def test_the_fastapi_app_stores_an_order_with_its_reminder_and_a_worker_runs_it(cluster: Cluster) -> None:
    variables = environment(cluster, "fastapi")
    cluster.worker(app="shop", environment=variables)
    cluster.beat(app="shop", environment=variables)

    shell(
        variables,
        "-c",
        "from fastapi.testclient import TestClient; from shop import web\n"
        "with TestClient(web) as client:\n"
        "    client.post('/orders', params={'email': 'ada@example.com'}).raise_for_status()\n"
        "    client.post('/orders/1/remind').raise_for_status()\n",
    )
    eventually(lambda: states(cluster, "remind-1") == ["succeeded"], 30, "Ada was reminded")
    eventually(lambda: "succeeded" in states(cluster, "poll-inbox"), 30, "the inbox was polled")


@pytest.mark.parametrize("example", sorted(each.name for each in EXAMPLES.iterdir() if each.is_dir()))
def test_an_example_has_a_readme_of_about_ten_lines_unless_it_is_a_tour(example: str) -> None:
    lines = Path(EXAMPLES / example / "README.md").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= (TOUR if example in TOURS else 16)
