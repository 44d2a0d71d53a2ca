"""The examples run, with real beats and workers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import yaml

from tests.docs.pages import ROOT
from tests.harness.processes import Cluster
from tests.harness.rows import jobs, row, sql
from tests.harness.wait import eventually

EXAMPLES = ROOT / "examples"
TOURS = ("pipeline",)  # no page explains them: the README does, and test_pipeline.py runs it
TOUR = 110  # lines
SHORT = {"PGBEAT_LEASE": "3"}  # seconds until another beat takes over from a killed one


# A user triggers and pauses in the admin, and pauses in the dashboard, as her browser would.
IN_THE_ADMIN = """
from django.contrib.auth.models import User
from django.test import Client

browser = Client(headers={"host": "localhost"})
browser.force_login(User.objects.create_superuser("ann"))
acts = "/admin/pgbeat/periodictask/@act/"
assert b"remind-1" in browser.get("/admin/pgbeat/periodictask/").content
assert 302 == browser.post(f"{acts}trigger/", {"key": "remind-1"}).status_code
assert 302 == browser.post(f"{acts}pause/", {"key": "remind-1", "reason": "too early"}).status_code
page = browser.get("/pgbeat/pause", {"name": "poll-inbox"}).content.decode()
token = page.split('name="token" value="')[1].split('"')[0]
form = f"token={token}&reason=sent+by+hand&until=&zone=UTC&step=do"
sent = browser.post("/pgbeat/pause?name=poll-inbox", form, content_type="application/x-www-form-urlencoded")
assert 303 == sent.status_code, sent.content
"""


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


def run_psql(cluster: Cluster, script: Path) -> None:
    """Run a script by psql, or without one as psql would in one transaction."""
    if shutil.which("psql") is None:
        with closing(psycopg2.connect(cluster.database)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(script.read_text(encoding="utf-8"))
        return
    words = ["psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", str(script), cluster.database]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def states(cluster: Cluster, name: str) -> list[str]:
    return [job["state"] for job in jobs(cluster.database, name)]


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


def test_the_plain_sql_runs_as_psql_runs_it(cluster: Cluster) -> None:
    variables = environment(cluster, "plain_sql")
    run_psql(cluster, EXAMPLES / "plain_sql" / "schedule.sql")
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


def test_the_django_project_runs_and_its_admin_and_dashboard_act_on_its_rows(
    cluster: Cluster,
) -> None:
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
    assert "no issues" in shell(variables, manage, "check", "--database", "default")
    shell(variables, manage, "shell", "-c", IN_THE_ADMIN)
    reminder, inbox = (row(cluster.database, name) for name in ("remind-1", "poll-inbox"))
    assert ("too early", "ann") == (reminder["pause_reason"], reminder["paused_by"])
    assert ("sent by hand", "ann") == (inbox["pause_reason"], inbox["paused_by"])
    eventually(lambda: states(cluster, "remind-1") == ["succeeded"] * 2, 30, "Ada was reminded again")


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


def test_the_flask_app_runs_its_tasks_in_its_context_and_shows_the_dashboard_to_its_staff(cluster: Cluster) -> None:
    variables = environment(cluster, "flask")
    shell(variables, EXAMPLES / "flask" / "serve.py")
    cluster.worker(app="serve", environment=variables)
    cluster.beat(app="serve", environment=variables)

    eventually(lambda: "succeeded" in states(cluster, "poll-inbox"), 30, "the inbox was polled")
    shell(
        variables,
        "-c",
        "from serve import web\n"
        "client = web.test_client()\n"
        "assert [403, 403] == [client.get(page).status_code for page in ('/beat/', '/beat/tasks')]\n"
        "client.set_cookie('session', 'made.up.cookie')\n"
        "assert 403 == client.get('/beat/').status_code\n"
        "client.post('/login', data={'user': 'bob'})\n"
        "assert 403 == client.get('/beat/').status_code\n"
        "client.post('/login', data={'user': 'anna'})\n"
        "page = client.get('/beat/tasks')\n"
        "assert (200, True) == (page.status_code, 'poll-inbox' in page.text), page.text\n"
        "assert {'id': 1} == client.post('/orders', data={'email': 'ada@example.com'}).json\n"
        "assert 'job' in client.post('/orders/1/remind').json\n"
        "assert 404 == client.post('/orders/2/remind').status_code\n",
    )
    eventually(lambda: states(cluster, "remind-1") == ["succeeded"], 30, "Ada was reminded")
    (polled, *_) = jobs(cluster.database, "poll-inbox")
    assert "schedule" == polled["origin"]


@pytest.mark.amqp
def test_the_nodes_of_the_compose_file_share_the_work_when_one_beat_is_killed(
    cluster: Cluster, database: str, amqp_url: str
) -> None:
    services = yaml.safe_load((EXAMPLES / "many_nodes" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    cluster.database, cluster.broker = database, amqp_url
    variables = environment(cluster, "many_nodes")
    variables["PGBEAT_AUTO_MIGRATE"] = services["beat"]["environment"]["PGBEAT_AUTO_MIGRATE"]

    def run(words: list[str]) -> str:
        program, *rest = words
        return shell(variables, Path(sys.executable).with_name(program), *rest)

    run(services["migrate"]["command"])
    assert ["celery", "-A", "shop", "beat", "-l", "INFO"] == services["beat"]["command"]  # as the cluster starts one
    beats = [
        cluster.beat(app="shop", environment=variables, wait=False)
        for _ in range(services["beat"]["deploy"]["replicas"])
    ]
    for _ in range(services["worker"]["deploy"]["replicas"]):
        cluster.worker(app="shop", environment=variables, wait=False)
    eventually(lambda: run(["celery-pgbeat", "nodes"]).count("alive") == 5, 60, "three beats and two workers")
    run(services["beat"]["healthcheck"]["test"][1:])
    eventually(lambda: "succeeded" in states(cluster, "poll-inbox"), 30, "the inbox was polled")

    beats[0].kill()
    before = len(states(cluster, "poll-inbox"))
    eventually(lambda: states(cluster, "poll-inbox")[before:].count("succeeded") >= 3, 40, "the others go on")
    runs = [job["scheduled_for"] for job in jobs(cluster.database, "poll-inbox")]
    assert len(set(runs)) == len(runs)
    run(services["beat"]["healthcheck"]["test"][1:])


def test_the_page_lists_each_example_once() -> None:
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[[^\]]+\]\(\.\./examples/(\w+)/README\.md\) \|", page, re.MULTILINE)

    assert sorted(each.name for each in EXAMPLES.iterdir() if each.is_dir()) == sorted(listed)


@pytest.mark.parametrize("example", sorted(each.name for each in EXAMPLES.iterdir() if each.is_dir()))
def test_an_example_has_a_readme_of_about_ten_lines_unless_it_is_a_tour(example: str) -> None:
    lines = Path(EXAMPLES / example / "README.md").read_text(encoding="utf-8").splitlines()

    assert len(lines) <= (TOUR if example in TOURS else 16)
