"""What real processes say of themselves: who they are, where they work, what they refuse, what they may not do."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg2
import pytest
from psycopg2 import sql as psql
from sqlalchemy.engine import make_url

from tests.acceptance.test_cli import CELERY, script, shell
from tests.harness import probe_app
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually

NO_GRANT = "may not create the schema 'pgbeat'"
SECOND_APP = "tests.acceptance.second_app"
# A beat writes a heartbeat each second, and counts as dead after three.
SHORT_LIVES = {"pgbeat_dead_after": 3, "pgbeat_heartbeat": 1, "pgbeat_lease": 2}
BROKEN = {"task": "app.probe", "schedule": 0.1, "args": ["broken"]}
MENDED = {"task": "app.probe", "schedule": 3600, "args": ["mended"]}


@pytest.fixture
def stranger(database: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The URL of an empty database for a user who may only connect."""
    name = unique_name()
    execute(database, "create role {} login password 's3cr3t'", name)
    yield make_url(database).set(username=name, password="s3cr3t").render_as_string(hide_password=False)
    execute(database, "drop owned by {}", name)
    execute(database, "drop role {}", name)


def execute(url: str, text: str, *names: str) -> None:
    """Run a statement as the owner of the database."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(psql.SQL(text).format(*map(psql.Identifier, names)))


def test_a_beat_and_a_worker_say_who_they_are_and_where_they_work(cluster: Cluster) -> None:
    beat, worker = cluster.beat(), cluster.worker()
    beat.wait_for_log("works on", 20)
    worker.wait_for_log("guards and tracks", 20)

    (line,) = [line for line in beat.log.splitlines() if "works on" in line]
    assert f"Beat {socket.gethostname()} (process {beat.pid}) works on the schema 'pgbeat' at postgresql" in line
    (line,) = [line for line in worker.log.splitlines() if "guards and tracks" in line]
    assert "This worker guards and tracks the jobs of periodic tasks, in the schema 'pgbeat' at postgresql" in line
    (node,) = sql(cluster.database, "select id from pgbeat.node where role = 'beat'")
    assert node["id"] not in beat.log


def test_a_beat_whose_user_may_not_migrate_names_the_grant_in_one_line_and_works_once_it_has_it(
    cluster: Cluster, database: str, stranger: str
) -> None:
    user, name = make_url(stranger).username, make_url(stranger).database
    assert user is not None
    assert name is not None
    beat = cluster.beat(environment={"PGBEAT_URL": stranger})
    beat.wait_for_log(NO_GRANT, 20)

    (line,) = [line for line in beat.log.splitlines() if NO_GRANT in line]
    assert f"grant create on database {name} to {user}." in line
    assert "celery-pgbeat migrate" in line
    assert "celery-pgbeat sql" in line
    assert "Traceback" not in beat.log
    assert "s3cr3t" not in beat.log

    execute(database, "grant create on database {} to {}", name, user)

    beat.wait_for_log("works on", 20)
    assert 1 == beat.log.count(NO_GRANT)


def test_what_code_declares_and_a_beat_refuses_is_where_everybody_looks_until_it_is_mended(cluster: Cluster) -> None:
    cluster.settings = SHORT_LIVES  # a beat raises alerts once it has looked on for 3 s
    beat = cluster.beat(settings={"beat_schedule": {"broken": BROKEN, "good": MENDED}})
    beat.wait_for_log("works on", 20)

    for words in (["list"], ["health"], ["doctor"], ["explain", "broken"]):
        done = shell(cluster.database, *words)
        assert "broken" in done.stdout + done.stderr, words
        assert "pgbeat_min_interval" in done.stdout + done.stderr, words
    alert = "select kind, reason from pgbeat.alert where name = 'broken'"
    (raised,) = eventually(lambda: sql(cluster.database, alert), 60, "the alert")
    assert "refused" == raised["kind"]
    beat.wait_for_log("'broken' in code is refused: code:probe declares it", 20)

    beat.stop()
    cluster.beat(settings={"beat_schedule": {"broken": MENDED, "good": MENDED}}).wait_for_log("works on", 20)
    assert [] == sql(cluster.database, "select name from pgbeat.refused_declaration")
    assert "" == shell(cluster.database, "list").stderr


def test_doctor_with_the_app_finds_what_its_beats_would_refuse(cluster: Cluster) -> None:
    settings = json.dumps({"beat_schedule": {"broken": BROKEN}})

    done = script(cluster.database, "doctor", command=CELERY, **{probe_app.SETTINGS: settings})

    assert "code:probe declares 'broken', and its beats refuse that: schedule 'every 0.1s'" in done.stdout


def test_a_second_app_sends_nothing_while_beats_of_the_first_live_and_takes_over_when_they_are_gone(
    cluster: Cluster,
) -> None:
    cluster.settings = SHORT_LIVES
    insert(cluster.database, "each second", "every 1s")
    first = cluster.beat()
    first.wait_for_log("works on", 20)
    second = cluster.beat(app=SECOND_APP, settings={"beat_schedule": {"of second": MENDED}})
    second.wait_for_log("The schema 'pgbeat' serves the app 'probe', and this beat is of the app 'second'", 20)
    first.wait_for_log("Beats of another app, 'second', use the schema 'pgbeat'", 20)

    own_row = "select name from pgbeat.periodic_task where name = 'of second'"
    done = shell(cluster.database, "doctor")
    assert "This schema has two apps: beats of 'second' run beside those of 'probe'" in done.stdout
    cluster.worker(app=SECOND_APP).wait_for_log("is of the app 'second', and the schema 'pgbeat' serves", 20)
    assert not second.has_logged("works on")
    assert [] == sql(cluster.database, own_row)
    assert 1 == len(sql(cluster.database, "select id from pgbeat.node where role = 'beat'"))

    first.stop()

    second.wait_for_log("beats of the app 'second' take over all its rows", 20)
    second.wait_for_log("works on", 20)
    eventually(lambda: sql(cluster.database, own_row), 20, "it")
    sent = len(jobs(cluster.database, "each second"))
    eventually(lambda: len(jobs(cluster.database, "each second")) > sent, 20, "the rows of the first are sent")

    yielded = second.log.count("serves the app 'probe'")
    first.start()
    first.wait_for_log("works on", 20)
    eventually(lambda: second.log.count("serves the app 'probe'") > yielded, 20, "it yields again")


def test_commands_whose_work_a_beat_does_say_so_when_none_is_alive(cluster: Cluster) -> None:
    insert(cluster.database, "hourly", "0 * * * *", timezone="UTC")
    commands = (
        ("trigger", "hourly", "--force"),
        ("add", "new", "--task", "app.probe", "--schedule", "every 1h"),
        ("backfill", "hourly", "2026-01-01", "2026-01-02"),
    )
    for words in commands:
        done = shell(cluster.database, *words)
        assert (0, True) == (done.returncode, done.stderr.startswith("Warning: No beat "))

    cluster.beat().wait_for_log("works on", 20)

    for words in commands:
        done = shell(cluster.database, *words)
        assert (0, "") == (done.returncode, done.stderr)
