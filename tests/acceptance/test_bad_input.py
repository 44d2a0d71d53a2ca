"""P6: one bad row stops only itself, and a column has the reason; each wrong input gets a clear error."""

from __future__ import annotations

import ast
import json
import re
from datetime import timedelta
from pathlib import Path

import psycopg2
import pytest

from tests.harness import broker
from tests.harness.processes import ROOT, Cluster
from tests.harness.rows import insert, insert_many, jobs, row, sql
from tests.harness.wait import eventually


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"schedule": "Mon *-*-* 88:00"}, "hour 88 is not in 0-23"),
        ({"schedule": "0 25 * * *"}, "hour 25 is not in 0-23"),
        ({"schedule": "0 0 30 2 *"}, "30"),
        ({"schedule": "every -20s"}, "-20"),
        ({"schedule": "every 0s"}, "0"),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"args": {"no": "list"}}, "args"),
        ({"kwargs": ["no", "object"]}, "kwargs"),
        ({"kwargs": {"big": "x" * 66_000}}, "more than 65536"),
        ({"args": ["x" * 10_000_000]}, "args and kwargs have 10000006 bytes together, more than 65536"),
        ({"options": {"unknown_option": 1}}, "unknown_option"),
        ({"options": {"serializer": "pickle"}}, "pickle"),
        ({"options": {"task_id": "1"}}, "task_id"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_p6_a_wrong_insert_is_refused_and_the_error_names_the_value(
    migrated_database: str, columns: dict[str, object], word: str
) -> None:
    with pytest.raises(psycopg2.Error, match=re.escape(word)) as refused:
        insert(migrated_database, "bad", **columns)

    assert "22023" == refused.value.pgcode


def test_p6_a_bad_row_among_good_ones_says_why_once_and_the_good_ones_run(cluster: Cluster) -> None:
    insert_many(cluster.database, 20)
    insert(cluster.database, "odd", "RRULE:FREQ=SOMETIMES")
    insert(cluster.database, "fast", "every 0.05s")
    insert(cluster.database, "unknown", "every 1s", task="no.such.task", overlap="allow")
    beat = cluster.beat()
    eventually(lambda: len(jobs(cluster.database)) >= 60, 20, "three rounds")

    assert "SOMETIMES" in row(cluster.database, "odd")["problem"]
    assert "pgbeat_min_interval" in row(cluster.database, "fast")["problem"]
    assert len(jobs(cluster.database, "unknown")) >= 2
    assert 1 == beat.log.count("Cannot plan 'odd'")
    assert [] == [job for name in ("odd", "fast") for job in jobs(cluster.database, name)]

    sql(cluster.database, "update pgbeat.periodic_task set schedule = 'every 1s' where name = 'odd'")
    eventually(lambda: jobs(cluster.database, "odd"), 10, "mended, it runs")
    assert row(cluster.database, "odd")["problem"] is None


def test_p6_p12_a_row_that_bypassed_the_trigger_is_not_sent_and_its_problem_says_why(cluster: Cluster) -> None:
    """A restored dump, an older package, or a session that replicates: no trigger has looked at these rows."""
    cluster.settings = {"pgbeat_lease": 2}  # a refused job is tried again after it
    insert_many(cluster.database, 5)
    bad = {
        "pickled": ({"serializer": "pickle"}, "options['serializer'] is 'pickle', not 'json', the only one allowed"),
        "unknown": ({"no_such_option": 1}, "options has 'no_such_option', which a periodic task cannot set"),
        "another": ({"headers": {"task": "app.die"}}, "has a header 'task', which is Celery's own"),
        "linked": ({"link": [{"task": "app.die", "args": [], "kwargs": {}, "options": {}}]}, "options has 'link'"),
        "mailbox": ({"exchange": "celery.pidbox"}, "a name that the broker or Celery keeps for itself"),
        "lasting": ({"time_limit": 10**18}, "not a number of seconds from 0 to 31622400"),
    }
    for name in bad:
        insert(cluster.database, name)
    past = "set session_replication_role = replica; update pgbeat.periodic_task set options = %(options)s "
    for name, (options, _) in bad.items():
        sql(cluster.database, past + "where name = %(name)s", name=name, options=json.dumps(options))
    others = {
        "nested": ("args", "[" * 800 + "]" * 800, "args is nested more than 100 levels deep"),
        "counted": ("kwargs", f'{{"a": {"9" * 400}}}', "kwargs has a number of more than 309 digits"),
        "unacked": ("queue", "unacked", "queue is 'unacked', a name that the broker or Celery keeps for itself"),
    }
    for name, (column, value, why) in others.items():
        insert(cluster.database, name)
        past = f"set session_replication_role = replica; update pgbeat.periodic_task set {column} = %(value)s "
        sql(cluster.database, past + "where name = %(name)s", name=name, value=value)
        bad[name] = ({}, why)
    sql(cluster.database, "select pgbeat.trigger('pickled')")
    cluster.beat()
    cluster.worker()

    def problems() -> dict[str, str]:
        return {name: row(cluster.database, name)["problem"] or "" for name in bad}

    eventually(lambda: all(problems().values()), 20, "each has its reason")
    assert dict.fromkeys(bad, True) == {name: bad[name][1] in problem for name, problem in problems().items()}
    done = "select 1 from pgbeat.job where periodic_task like 'row-%%' and state = 'succeeded'"
    eventually(lambda: len(sql(cluster.database, done, ignored=None)) >= 15, 20, "the good ones run")

    def given_up() -> bool:
        return [job["state"] for job in jobs(cluster.database, "pickled")] == ["lost"]

    eventually(given_up, 30, "what was triggered of it is not sent either")
    assert bad["pickled"][1] in jobs(cluster.database, "pickled")[0]["error"]
    assert {"row"} == {run.periodic_task.split("-")[0] for run in cluster.probe.runs()}


def sent(database: str, name: str) -> set[tuple[str, int]]:
    """Return state and sends of the jobs of a row, but for those that the beat is sending at this moment."""
    return {(job["state"], job["sends"]) for job in jobs(database, name) if job["state"] != "pending"}


def test_p6_a_job_whose_message_cannot_be_built_is_lost_after_three_tries_and_no_other_is(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 1, "pgbeat_poll": 0.5}
    insert(cluster.database, "good", "every 1s", overlap="allow")
    insert(cluster.database, "bad", args=["too", 1, True, "many"], schedule=None, next_run_at="2026-01-01T00:00:00Z")
    cluster.beat()

    eventually(lambda: [job for job in jobs(cluster.database, "bad") if job["state"] == "lost"], 30, "given up")
    (job,) = jobs(cluster.database, "bad")
    assert job["error"].startswith("unsendable: its message cannot be made: TypeError")
    assert {("sent", 1)} == sent(cluster.database, "good")


def test_p6_an_option_that_no_message_can_carry_stops_only_its_own_row(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_lease": 1, "pgbeat_poll": 0.5}
    for number in range(3):
        insert(cluster.database, f"good-{number}", "every 1s", overlap="allow")
    insert(cluster.database, "bad", "every 1s")
    sql(
        cluster.database,
        "set session_replication_role = replica; "
        "update pgbeat.periodic_task set options = jsonb_build_object('countdown', 1e5000::numeric) where name = 'bad'",
    )
    cluster.beat()

    problem = "select problem from pgbeat.periodic_task where problem is not null"
    (found,) = eventually(lambda: sql(cluster.database, problem), 30, "it has its reason")
    assert found["problem"].startswith("options has a number of more than 309 digits")
    eventually(lambda: len(jobs(cluster.database)) >= 6, 30, "the good ones go on")
    assert {("sent", 1)} == set().union(*(sent(cluster.database, f"good-{number}") for number in range(3)))


OWN_ERROR = """
from celery import Task
from tests.harness.probe_app import app

class Picky(Task):
    def apply_async(self, *args, **kwargs):
        raise ConnectionRefusedError("this task's own trouble")

@app.task(base=Picky, name="app.picky")
def picky(label): ...
"""


def test_p6_a_task_whose_apply_async_raises_a_broker_error_is_given_up_and_the_others_are_sent(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "picky_app.py").write_text(OWN_ERROR)
    cluster.settings = {"pgbeat_lease": 1, "pgbeat_poll": 0.5}
    for number in range(3):
        insert(cluster.database, f"good-{number}", "every 1s", overlap="allow")
    insert(cluster.database, "bad", "every 1h", task="app.picky", next_run_at="2026-01-01T00:00:00Z")
    cluster.beat(app="picky_app", environment={"PYTHONPATH": f"{ROOT}:{tmp_path}"})

    eventually(lambda: [job for job in jobs(cluster.database, "bad") if job["state"] == "lost"], 40, "given up")
    late = [
        job["sent_at"] - job["scheduled_for"]
        for number in range(3)
        for job in jobs(cluster.database, f"good-{number}")
        if job["sent_at"]
    ]
    assert len(late) >= 9
    assert max(late) < timedelta(seconds=4)


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("postgresql://postgres:s3cret@{server}/no_such_database", "no_such_database"),
        ("postgresql://nobody:s3cret@{server}/postgres", "nobody"),
        ("postgresql://postgres:s3cret@127.0.0.1:1/postgres", "127.0.0.1:1"),
    ],
)
def test_p10_the_log_names_an_unusable_database_without_its_password_and_the_beat_waits(
    cluster: Cluster, postgres_server: str, url: str, word: str
) -> None:
    server = postgres_server.rpartition("@")[2].partition("/")[0]
    beat = cluster.beat(environment={"PGBEAT_URL": url.format(server=server)})
    beat.wait_for_log("is not usable", 20)

    assert word in beat.log
    assert "s3cret" not in beat.log
    assert beat.is_running()


def test_a_url_whose_driver_is_missing_ends_the_start_and_names_the_package_to_install(cluster: Cluster) -> None:
    beat = cluster.beat(environment={"PGBEAT_URL": "postgresql+asyncpg://u:s3cret@h/d"}, wait=False)

    assert 0 != beat.wait(20)
    assert "works with psycopg2 and psycopg" in beat.log
    assert "s3cret" not in beat.log


# What runs text, or what makes objects of any kind from it.
RUNS_CODE = {"eval", "exec", "compile", "__import__", "import_module", "pickle", "marshal", "shelve", "yaml"}


def names_in(path: Path) -> set[str]:
    """List the names that a file reads, calls or imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {part for alias in node.names for part in alias.name.split(".")}
            found |= set((getattr(node, "module", None) or "").split("."))
    return found


def test_p12_no_package_that_reads_rows_imports_what_runs_code() -> None:
    """Except one place, which imports our own part of the worker."""
    package = ROOT / "celery_pgbeat"
    folders = ("beat", "postgres", "planning", "schedules", "worker", "api", "declare")
    files = [path for folder in folders for path in (package / folder).rglob("*.py")]

    assert len(files) > 50
    assert {"configure.py": {"import_module"}} == {
        path.name: found for path in files if (found := names_in(path) & RUNS_CODE)
    }


def test_p12_text_that_looks_like_code_reaches_the_task_unchanged(cluster: Cluster) -> None:
    """Celery's JSON decodes a few types that arguments name; a row that names another one stops only itself."""
    cluster.settings = {"pgbeat_lease": 1, "pgbeat_poll": 0.5}
    args = ["__import__('os').abort()", {"__reduce__": ["os.abort", []]}, {"py/object": "os.abort"}]
    insert(cluster.database, "code", None, args=args, next_run_at="2026-01-01T00:00:00Z")
    insert(
        cluster.database,
        "type",
        None,
        args=[{"__type__": "os.abort", "__value__": []}],
        next_run_at="2026-01-01T00:00:00Z",
    )
    beat = cluster.beat()

    eventually(lambda: broker.depth(cluster.broker) == 1, 20, "it goes out")
    eventually(lambda: [job for job in jobs(cluster.database, "type") if job["state"] == "lost"], 20, "given up")
    assert [args] == [message.args for message in broker.drain(cluster.broker)]
    assert "Unsupported type" in jobs(cluster.database, "type")[0]["error"]
    assert beat.is_running()


def test_p12_a_task_that_the_app_does_not_allow_is_never_sent(cluster: Cluster) -> None:
    cluster.settings = {"pgbeat_allowed_tasks": ["app.*"]}
    insert(cluster.database, "allowed", "every 1s", overlap="allow")
    insert(cluster.database, "forbidden", "every 1s", task="os.system", overlap="allow")
    insert(cluster.database, "by-hand", None, task="os.system")
    sql(cluster.database, "select pgbeat.trigger('by-hand')")
    cluster.beat()
    eventually(lambda: len(jobs(cluster.database, "forbidden")) >= 2, 20, "two ticks decided")

    assert {("skipped", "not_allowed")} == {
        (job["state"], job["reason"]) for name in ("forbidden", "by-hand") for job in jobs(cluster.database, name)
    }
    assert {"app.probe"} == {message.task for message in broker.drain(cluster.broker)}


def test_p12_a_queue_that_the_app_does_not_allow_gets_nothing(cluster: Cluster) -> None:
    cluster.settings["pgbeat_allowed_queues"] = ["lo*"]
    insert(cluster.database, "allowed", queue="low")
    insert(cluster.database, "forbidden", queue="high")
    insert(cluster.database, "past it", options={"routing_key": "high"})
    insert(cluster.database, "by hand", None, queue="high")
    sql(cluster.database, "select pgbeat.trigger('by hand')")
    beat = cluster.beat()
    eventually(lambda: len(jobs(cluster.database, "allowed")) >= 2, 20, "two ticks of what is allowed")
    eventually(lambda: len(jobs(cluster.database, "forbidden")) >= 2, 20, "two ticks decided")

    assert {("skipped", "not_allowed")} == {
        (job["state"], job["reason"])
        for name in ("forbidden", "past it", "by hand")
        for job in jobs(cluster.database, name)
    }
    assert "pgbeat_allowed_queues does not allow the queue 'high'" in beat.log
    assert {"allowed"} == {message.args[0] for message in broker.drain(cluster.broker, queue="low")}
    assert 0 == broker.depth(cluster.broker, queue="high") + broker.depth(cluster.broker)
