"""Real beats, workers, authors and commands with the roles that `celery-pgbeat sql --roles` makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from celery import Celery
from sqlalchemy.engine import make_url

from celery_pgbeat import PgBeat
from celery_pgbeat.postgres.migrate import MIN_COMPATIBLE, latest
from celery_pgbeat.postgres.roles import ROLES, roles_script
from tests.harness.next_version import next_version
from tests.harness.processes import Cluster
from tests.harness.rows import insert, jobs, row, sql
from tests.harness.wait import eventually

SECRET = "s3cr3t-with-%-and-@"
BACKFILL = "backfill nightly 2020-05-01 2020-05-31"


class Users:
    """A user for each role that can log in and looks names up in pg_catalog alone."""

    def __init__(self, owner_url: str, unique_name: Callable[[], str]) -> None:
        self._owner_url = owner_url
        sql(owner_url, roles_script("pgbeat"))
        self._names = {role: f"{unique_name()}_{role}" for role in ROLES}
        for role, name in self._names.items():
            sql(owner_url, f"create role {name} login password %(secret)s in role pgbeat_{role}", secret=SECRET)
            sql(owner_url, f"alter role {name} set search_path = ''")

    def url(self, role: str) -> str:
        """The database's URL for the user of this role."""
        login = make_url(self._owner_url).set(username=self._names[role], password=SECRET)
        return login.render_as_string(hide_password=False)

    def drop(self) -> None:
        """Remove them."""
        for name in self._names.values():
            sql(
                self._owner_url,
                "select pg_terminate_backend(pid) from pg_stat_activity where usename = %(name)s",
                name=name,
            )
            with suppress(psycopg2.Error):
                sql(self._owner_url, f"drop role {name}")


@pytest.fixture
def users(migrated_database: str, unique_name: Callable[[], str]) -> Iterator[Users]:
    made = Users(migrated_database, unique_name)
    yield made
    made.drop()


def ends_as(cluster: Cluster, name: str, state: str) -> None:
    eventually(lambda: [job for job in jobs(cluster.database, name) if job["state"] == state], 40, f"{name} {state}")


def test_a_beat_and_a_worker_work_with_the_least_grants(cluster: Cluster, users: Users) -> None:
    cluster.settings = {
        "pgbeat_auto_migrate": False,
        "pgbeat_lease": 2,
        "pgbeat_poll": 0.5,
        "pgbeat_dead_after": 3,
        "pgbeat_heartbeat": 1,
        "beat_schedule": {"code": {"task": "app.probe", "schedule": 1, "args": ["code"]}},
    }
    author = users.url("author")
    insert(author, "plain", overlap="allow")
    insert(author, "retried", "every 5s", task="app.flaky", args=["retried", 1])
    insert(author, "dying", "every 5s", task="app.die")
    insert(author, "skipped", args=["skipped", 4])
    insert(author, "replaced", args=["replaced", 4], overlap="cancel_other")
    insert(author, "waiting", args=["waiting", 2], overlap="buffer_one")
    insert(author, "spaced", min_gap="3 s", overlap="allow")
    insert(author, "sent", tracking="send", overlap="allow")
    insert(author, "failing", "every 5s", args=["failing", 0, True], pause_after_failures=1)
    insert(author, "unknown", "every 5s", task="app.gone", overlap="allow")
    insert(author, "asking", "every 5s", args=["asking", 0, True], on_error="ask")
    insert(author, "people", "every 5s", task=None, kind="human", group_name="one place", due_in="1 hour")
    sql(author, "insert into pgbeat.blackout (name, windows) values ('never', '{}')")
    insert(author, "windowed", blackout=["window: never"], overlap="allow")
    insert(author, "on demand", None)
    sql(author, "select pgbeat.limit_group('one place', 1)")
    insert(author, "filled", "* * * * *", enabled=False, group_name="one place")
    for minutes in (3, 900):
        sql(
            author,
            f"select pgbeat.backfill('filled', now() - interval '{minutes} minutes', now() - interval '1 minute')",
        )
    (dropped,) = sql(author, "select id from pgbeat.backfill order by created_at desc limit 1")
    sql(author, "select pgbeat.cancel_backfill(%(id)s)", id=dropped["id"])

    beat = cluster.beat(environment={"PGBEAT_URL": users.url("beat")})
    worker = cluster.worker(concurrency=6, environment={"PGBEAT_URL": users.url("worker")})
    sql(author, "select pgbeat.trigger('on demand')")

    for name in ("plain", "code", "retried", "windowed", "waiting", "on demand"):
        ends_as(cluster, name, "succeeded")
    ends_as(cluster, "dying", "lost")
    ends_as(cluster, "skipped", "skipped")
    ends_as(cluster, "spaced", "skipped")
    ends_as(cluster, "sent", "untracked")
    ends_as(cluster, "failing", "failed")
    eventually(lambda: row(cluster.database, "failing")["paused_by"] == "pgbeat", 20, "the pause")
    ends_as(cluster, "unknown", "failed")
    ends_as(cluster, "asking", "error")
    (asking,) = sql(author, "select id from pgbeat.job where periodic_task = 'asking' and state = 'error'")
    sql(author, "select pgbeat.retry_job(%(id)s)", id=asking["id"])
    ends_as(cluster, "asking", "error")
    sql(author, "select pgbeat.fail_job(%(id)s)", id=asking["id"])
    ends_as(cluster, "asking", "failed")
    ends_as(cluster, "people", "created")
    person = users.url("person")
    (work,) = sql(person, "select id from pgbeat.my_work('ann')")
    sql(person, "select pgbeat.pick_up(%(id)s, 'ann')", id=work["id"])
    sql(person, "select pgbeat.finish(%(id)s, 'succeeded')", id=work["id"])
    sql(author, "select pgbeat.pause('people')")
    for job in jobs(cluster.database, "people"):
        if job["finished_at"] is None:
            sql(person, "select pgbeat.cancel_job(%(id)s)", id=job["id"])
    ends_as(cluster, "people", "succeeded")
    ends_as(cluster, "replaced", "revoked")
    ends_as(cluster, "filled", "succeeded")
    told = "select state from pgbeat.backfill order by created_at"
    eventually(lambda: [{"state": "finished"}, {"state": "cancelled"}] == sql(users.url("reader"), told), 40, "filled")
    sql(author, "select pgbeat.pause('plain', 'enough', pgbeat.now() + interval '2 s')")
    eventually(
        lambda: sql(author, "select name from pgbeat.periodic_task where name = 'plain' and enabled"), 20, "resumed"
    )
    assert (0, 0) == (worker.stop(), beat.stop())

    for node in (beat, worker):
        assert "permission denied" not in node.log
        assert "must be owner" not in node.log
        assert SECRET not in node.log
        assert "s3cr3t" not in node.log
    assert [] == sql(cluster.database, "select id from pgbeat.node")


def test_arguments_nested_five_thousand_deep_stop_only_their_own_row(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 1, "pgbeat_poll": 0.5}
    deep = "[" * 5_000 + "]" * 5_000
    for name in ("bomb", "option bomb"):
        insert(cluster.database, name, None)
    past = "set session_replication_role = replica; "
    bomb = "update pgbeat.periodic_task set args = %(deep)s::jsonb where name = 'bomb'"
    with pytest.raises(psycopg2.Error, match="args is nested more than 100 levels deep"):
        sql(cluster.database, bomb, deep=deep)
    sql(cluster.database, past + bomb, deep=deep)
    sql(
        cluster.database,
        past + "update pgbeat.periodic_task set options = jsonb_build_object('headers', jsonb_build_object('x', "
        "%(deep)s::jsonb)) where name = 'option bomb'",
        deep=deep,
    )
    insert(cluster.database, "good", overlap="allow")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now() where name like '%%bomb'")
    beat = cluster.beat()
    worker = cluster.worker()

    problem = "select problem from pgbeat.periodic_task where problem is not null order by name"
    eventually(lambda: len(sql(cluster.database, problem)) == 2, 40, "both have their reason")
    assert ["args is nested more than 100 levels deep", "options is nested more than 100 levels deep"] == [
        row["problem"].partition(":")[0] for row in sql(cluster.database, problem)
    ]
    ends_as(cluster, "good", "succeeded")
    assert beat.is_running()
    assert worker.is_running()


def test_arguments_with_argsrepr_show_in_no_log_and_no_event(cluster: Cluster) -> None:
    insert(
        cluster.database,
        "personal",
        args=["patient-4711"],
        overlap="allow",
        options={"argsrepr": "(***)", "kwargsrepr": "{***}"},
    )
    insert(cluster.database, "open", args=["patient-4712"], overlap="allow")
    app = Celery("watch", broker=cluster.broker, set_as_current=False)
    app.conf.worker_redirect_stdouts = False
    seen: list[dict[str, Any]] = []
    beat = cluster.beat(arguments=["-l", "DEBUG"], settings={"task_send_sent_event": True})
    worker = cluster.worker(arguments=["-E"])

    def received() -> bool:
        return {"(***)", "['patient-4712']"} <= {event.get("args") for event in seen}

    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"*": seen.append})
        for _ in range(100):
            with suppress(TimeoutError):
                receiver.capture(limit=20, timeout=0.5, wakeup=False)
            if received():
                break
    ends_as(cluster, "personal", "succeeded")

    assert received()
    # What a task returns is its own affair, and Celery shows it.
    shown = [event for event in seen if "patient-4711" in f"{event.get('args')} {event.get('kwargs')}"]
    assert [] == shown
    assert "patient-4711" not in beat.log
    assert [] == [line for line in worker.log.splitlines() if "patient-4711" in line and "succeeded in" not in line]


def test_a_beat_that_may_not_migrate_says_so_and_does_not_try(cluster: Cluster, users: Users) -> None:
    sql(cluster.database, "update pgbeat.schema_version set version = version - 1")
    beat = cluster.beat(
        settings={"pgbeat_auto_migrate": False}, environment={"PGBEAT_URL": users.url("beat")}, wait=False
    )

    beat.wait_for_log("celery-pgbeat migrate", 20)
    assert "s3cr3t" not in beat.log


def run(
    url: str, *words: str, env: Mapping[str, str] = os.environ, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from celery_pgbeat.cli import main; main()", *words]
    environment = {**env, "PGBEAT_URL": url}
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "command", ["jobs", "upcoming", "nodes", "explain nightly", "backfill list", f"{BACKFILL} --dry-run"]
)
def test_commands_work_with_the_role_of_a_reader_and_show_no_arguments(
    users: Users, migrated_database: str, command: str
) -> None:
    insert(migrated_database, "nightly", "0 3 * * *", timezone="UTC", args=["personal"])
    done = run(users.url("reader"), *command.split(), "--json")

    assert 0 == done.returncode, done.stderr
    assert "personal" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["trigger nightly", "pause nightly", "list --json", "show nightly", BACKFILL])
def test_a_command_that_a_reader_may_not_run_fails_in_one_line_without_the_password(
    users: Users, migrated_database: str, command: str
) -> None:
    insert(migrated_database, "nightly", "0 3 * * *", timezone="UTC")
    done = run(users.url("reader"), *command.split())

    assert 0 != done.returncode
    assert "permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert "s3cr3t" not in done.stdout + done.stderr


def test_the_doctor_finds_the_grants_of_a_beat_complete(users: Users) -> None:
    findings = json.loads(run(users.url("beat"), "doctor", "--json").stdout)["findings"]
    assert [] == [found for found in findings if found["check"] in ("grants", "schema")]
    findings = json.loads(run(users.url("reader"), "doctor", "--json").stdout)["findings"]
    assert ["grants"] == [found["check"] for found in findings if found["check"] in ("grants", "schema")]


def test_the_python_api_works_with_the_role_of_an_author(users: Users) -> None:
    with closing(PgBeat(Celery("shop"), url=users.url("author"))) as beat:
        beat.schedule("nightly", task="app.probe", schedule="0 3 * * *", kwargs={"a": 1})
        beat.schedule("nightly", task="app.probe", schedule="0 4 * * *", kwargs={"a": 1})
        beat.pause("nightly", reason="for now")
        beat.resume("nightly")
        beat.trigger("nightly")
        assert "'nightly' is not running" in beat.explain("nightly")
        assert beat.unschedule("nightly")


def test_a_later_migration_runs_as_the_owner_of_the_schema(
    users: Users, migrated_database: str, tmp_path: Path
) -> None:
    owner = make_url(users.url("owner")).update_query_dict({"options": "-c role=pgbeat_owner"})
    environment = {**os.environ, **next_version(tmp_path / "next", MIN_COMPATIBLE)}
    done = run(owner.render_as_string(hide_password=False), "migrate", env=environment, cwd=tmp_path)

    assert 0 == done.returncode, done.stderr
    assert [{"version": latest() + 1}] == sql(migrated_database, "select version from pgbeat.schema_version")
    assert [] == sql(
        migrated_database,
        "select oid::regprocedure from pg_proc where pronamespace = 'pgbeat'::regnamespace "
        "and proowner <> 'pgbeat_owner'::regrole",
    )
