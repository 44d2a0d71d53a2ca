"""What Celery 5.7 expects of a scheduler, and the mistakes of other schedulers."""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import celery.beat
import psycopg2
import pytest
from celery import Celery
from celery.beat import Service
from celery.bin.beat import beat as celery_beat

from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.postgres.migrate import latest
from tests.harness import broker
from tests.harness.faults import Fault
from tests.harness.processes import ROOT, Cluster
from tests.harness.rows import insert, insert_many, jobs, row, sql
from tests.harness.wait import eventually

NOWHERE = "postgresql://shop:s3cret@127.0.0.1:1/shop"


def app_of(**settings: Any) -> Celery:
    app = Celery("contract", broker="memory://", set_as_current=False)
    app.conf.update(beat_scheduler="pgbeat", **settings)
    return app


def test_a_lazy_scheduler_touches_nothing_and_its_banner_shows_no_password() -> None:
    scheduler = Scheduler(app_of(pgbeat_url=NOWHERE), lazy=True)

    assert "shop:***@127.0.0.1" in scheduler.info
    assert "s3cret" not in scheduler.info
    assert {} == scheduler.schedule
    scheduler.close()


@pytest.mark.parametrize(("lazy", "expected"), [(True, 0), (False, 1)], ids=["lazy", "control"])
def test_a_lazy_scheduler_opens_no_connection(lazy: bool, expected: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        app = app_of(pgbeat_url=f"postgresql://{address}/shop?connect_timeout=2", broker_url=f"redis://{address}/0")
        scheduler = Service(app, scheduler_cls="pgbeat").get_scheduler(lazy=lazy)
        assert address in scheduler.info
        if lazy:
            assert {} == scheduler.schedule
        else:
            scheduler.tick()
        scheduler.close()
        callers, _, _ = select.select([server], [], [], 0.2)

    assert expected == len(callers)


def test_the_banner_shows_a_wrong_setting_instead_of_raising() -> None:
    assert "pgbeat_lease is 'soon'" in Scheduler(app_of(pgbeat_url=NOWHERE, pgbeat_lease="soon"), lazy=True).info
    assert "pgbeat_url is not set" in Scheduler(app_of(), lazy=True).info


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"pgbeat_batch": 0}, "pgbeat_batch is 0; it must be from 1 to 10000"),
        (
            {"timezone": "Europe/Berln"},
            "Celery's setting timezone: 'Europe/Berln': there is no time zone of that name; did you mean "
            "'Europe/Berlin'?",
        ),
    ],
)
def test_a_wrong_setting_ends_the_start_and_is_named_in_one_line(
    caplog: pytest.LogCaptureFixture, setting: dict[str, Any], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        Scheduler(app_of(pgbeat_url=NOWHERE, **setting))

    assert 1 == ended.value.code
    assert [f"The beat cannot start: {said}"] == caplog.messages


def test_a_beat_without_a_url_names_what_is_set_in_its_place_and_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from types import ModuleType\n"
        "from celery import Celery\n"
        "from celery_pgbeat import PgBeat\n"
        "app = Celery('shop', broker='memory://')\n"
        "settings = ModuleType('settings')\n"
        "vars(settings).update(CELERY_PGBEAT_ULR='postgresql://shop:hush@localhost/shop', CELERY_PGBEAT_LEESE=3)\n"
        "app.config_from_object(settings, namespace='CELERY')\n"
        "beat = PgBeat(app)\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "shop", "beat", "-l", "info"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PGBEAT_")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    said = done.stdout + done.stderr
    assert 1 == done.returncode
    assert "pgbeat_url is not set, but CELERY_PGBEAT_ULR is (did you mean CELERY_PGBEAT_URL?): put it into" in said
    assert (
        "CELERY_PGBEAT_LEESE is not a setting of this version and has no effect. Did you mean 'CELERY_PGBEAT_LEASE'?"
        in said
    )
    assert "Traceback" not in said
    assert "hush" not in said
    assert len(done.stderr.splitlines()) < 10


def test_the_name_pgbeat_is_registered_with_celery() -> None:
    assert isinstance(Service(app_of(pgbeat_url=NOWHERE), scheduler_cls="pgbeat").get_scheduler(lazy=True), Scheduler)


@pytest.mark.parametrize(("option", "expected"), [({}, 5), ({"max_interval": 2}, 2)])
def test_max_interval_is_an_upper_bound_of_the_wait(option: dict[str, Any], expected: int) -> None:
    assert expected == Scheduler(app_of(pgbeat_url=NOWHERE), lazy=True, **option).max_interval


def test_a_tick_raises_nothing_while_the_database_is_away() -> None:
    scheduler = Scheduler(app_of(pgbeat_url=NOWHERE), max_interval=1)

    assert [0.0, 0.0] == [scheduler.tick(), scheduler.tick()]
    scheduler.close()
    scheduler.close()
    assert scheduler.tick() == scheduler.max_interval


def test_a_failing_cycle_is_logged_and_the_beat_goes_on(cluster: Cluster) -> None:
    beat = cluster.beat(
        inject=[Fault("celery_pgbeat.postgres.beat_queries:BeatQueries.mark_or_submit", "raise", "before")]
    )
    insert(cluster.database, "a", next_run_at="2026-01-01T00:00:00Z", schedule=None)

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "the next cycle sends it")
    assert "The step 'submit due rows' failed, the others go on: " in beat.log
    assert beat.is_running()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_tick_completes_the_batch_and_frees_the_other_rows(
    cluster: Cluster, number: int
) -> None:
    publish = "celery_pgbeat.beat.scheduler:Scheduler.apply_async"
    insert_many(cluster.database, 20, "every 1h")
    beat = cluster.beat(inject=[Fault(publish, "hang", "before", call=5, seconds=1.5)])
    eventually(lambda: row(cluster.database, "row-0001")["next_run_at"], 10, "planned")
    sql(cluster.database, "update pgbeat.periodic_task set next_run_at = now()")
    beat.wait_for_log("fault: hang", 10)

    beat.signal(number)
    beat.signal(number)

    assert 0 == beat.wait(5)
    assert "Traceback" not in beat.log
    assert [] == sql(cluster.database, "select 1 from pgbeat.periodic_task where marked_by is not null")
    assert [] == sql(cluster.database, "select 1 from pgbeat.active_job where marked_by is not null")
    assert {str(job["id"]) for job in jobs(cluster.database) if job["state"] == "sent"} == {
        message.id for message in broker.drain(cluster.broker)
    }


def test_a_cycle_that_hangs_delays_neither_the_end_of_the_beat_nor_the_other_beats(cluster: Cluster) -> None:
    insert(cluster.database, "held", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    beat = cluster.beat(
        settings={"pgbeat_lease": 120},
        inject=[Fault("celery_pgbeat.beat.send.publisher:Publisher.publish", "hang", "before", seconds=60)],
    )
    beat.wait_for_log("fault: hang", 20)

    began = time.monotonic()
    beat.signal(signal.SIGTERM)
    assert 0 == beat.wait(8)
    assert time.monotonic() - began < 5
    cluster.beat()
    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "another beat sends what was handed back")


def test_beat_inside_a_worker_works(cluster: Cluster) -> None:
    insert(cluster.database, "embedded", "every 1s", overlap="allow")
    worker = cluster.worker(arguments=["-B", "-s", "unused"])

    eventually(lambda: len(jobs(cluster.database, "embedded")) >= 3, 20, "three ticks")
    worker.stop(45)  # billiard: a pool process waits 30 s for the worker to read its last result
    assert [] == sql(cluster.database, "select 1 from pgbeat.node where role = 'beat'")
    assert [] == sql(cluster.database, "select 1 from pgbeat.periodic_task where marked_by is not null")


@pytest.mark.skipif(
    "enable_remote_control" not in {option.name for option in celery_beat.params}, reason="not in this Celery"
)
def test_a_working_beat_answers_ping(cluster: Cluster) -> None:
    beat = cluster.beat(arguments=["--enable-remote-control", "-n", "b1@test"])
    beat.wait_for_log("works on", 20)
    app = Celery("ping", broker=cluster.broker, set_as_current=False)

    def ping() -> Any:
        return app.control.inspect(timeout=1, destination=["b1@test"]).ping()

    assert {"b1@test": {"ok": "pong"}} == eventually(ping, 10, "pong")


def test_the_schedule_shows_the_rows_as_entries_without_loading_the_table(migrated_database: str) -> None:
    insert(migrated_database, "a", "*/5 * * * *", queue="q2")
    insert(migrated_database, "b", "every 30s", args=[1])
    scheduler = Scheduler(app_of(pgbeat_url=migrated_database))

    assert ["a", "b"] == list(scheduler.schedule)
    entry = scheduler.schedule["a"]
    assert ("app.probe", {"queue": "q2"}, "<crontab: */5 * * * * (m/h/dM/MY/d)>") == (
        entry.task,
        entry.options,
        repr(entry.schedule),
    )
    assert 30 == scheduler.schedule["b"].schedule.run_every.total_seconds()
    with pytest.raises(KeyError):
        scheduler.schedule["c"]
    scheduler.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("calendar: Mon *-*-* 09:00", "<schedule: calendar: Mon *-*-* 09:00>"),
        ("RRULE:FREQ=DAILY", "<schedule: RRULE:FREQ=DAILY>"),
        ("*/10 * * * * *", "<schedule: */10 * * * * *>"),
        (None, "<no schedule>"),
    ],
)
def test_a_schedule_that_celery_has_no_class_for_is_shown_as_its_text(
    migrated_database: str, text: str | None, shown: str
) -> None:
    insert(migrated_database, "a", text)
    scheduler = Scheduler(app_of(pgbeat_url=migrated_database))

    schedule = scheduler.schedule["a"].schedule

    long_ago = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert shown == repr(schedule)
    assert (text is not None) == schedule.is_due(long_ago).is_due
    assert 0 < schedule.is_due(long_ago).next <= 7 * 86400
    assert (text is not None) == (schedule.remaining_estimate(long_ago) < timedelta(0))
    assert schedule == scheduler.schedule["a"].schedule == pickle.loads(pickle.dumps(schedule))
    scheduler.close()


SENTRY = """
import json, sys
import sentry_sdk
from sentry_sdk.integrations.celery import CeleryIntegration
sentry_sdk.init(
    dsn="http://key@127.0.0.1:9/1",
    integrations=[CeleryIntegration(monitor_beat_tasks=True)],
    transport=lambda event: None,
    default_integrations=False,
)
from tests.harness.probe_app import app
"""


def test_sentrys_monitor_finds_the_schedule_and_its_headers_reach_the_message(cluster: Cluster, tmp_path: Any) -> None:
    (tmp_path / "sentry_app.py").write_text(SENTRY)
    row = {"next_run_at": "2026-01-01T00:00:00Z", "timezone": "America/New_York"}
    insert(cluster.database, "monitored", "*/5 * * * *", **row)
    cluster.beat(app="sentry_app", environment={"PYTHONPATH": f"{ROOT}:{tmp_path}"})

    eventually(lambda: broker.depth(cluster.broker) == 1, 20, "the message")
    (message,) = broker.drain(cluster.broker)
    assert "monitored" == message.headers["headers"]["sentry-monitor-slug"]
    assert {"type": "crontab", "value": "*/5 * * * *"} == (
        message.headers["headers"]["sentry-monitor-config"]["schedule"]
    )
    assert "America/New_York" == message.headers["headers"]["sentry-monitor-config"]["timezone"]  # the app's is UTC


def test_a_setting_is_read_from_the_environment(cluster: Cluster) -> None:
    beat = cluster.beat(environment={"PGBEAT_POLL": "0.25"}, wait=False)
    beat.wait_for_log("works on", 20)
    wrong = cluster.beat(environment={"PGBEAT_POLL": "now and then"}, wait=False)

    assert 0 != wrong.wait(20)
    assert "pgbeat_poll is 'now and then'" in wrong.log


def test_ten_beats_on_an_empty_database_all_come_up(cluster: Cluster, database: str) -> None:
    cluster.database = database
    beats = [cluster.beat(wait=False) for _ in range(10)]

    for beat in beats:
        beat.wait_for_log("works on", 60)
    assert 10 == len(sql(database, "select id from pgbeat.node"))
    assert not [beat for beat in beats if "Traceback" in beat.log]


def test_an_older_beat_that_faces_a_newer_schema_idles_and_says_so(cluster: Cluster) -> None:
    sql(cluster.database, "update pgbeat.schema_version set version = 999, min_compatible = 999")
    insert(cluster.database, "a", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    beat = cluster.beat()

    beat.wait_for_log("upgrade celery-pgbeat on this node", 10)
    time.sleep(1)
    assert beat.is_running()
    assert 0 == broker.depth(cluster.broker)


def test_an_older_beat_works_beside_a_newer_schema_that_is_compatible(cluster: Cluster) -> None:
    sql(cluster.database, "update pgbeat.schema_version set version = 999")
    insert(cluster.database, "a", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    cluster.beat()

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "it works")


def test_an_older_beat_leaves_schedules_that_it_cannot_read_to_a_newer_beat(cluster: Cluster) -> None:
    sql(cluster.database, "update pgbeat.schema_version set version = 999")
    insert(cluster.database, "known", "every 1s", overlap="allow")
    with closing(psycopg2.connect(cluster.database)) as newer, newer, newer.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")  # its own trigger knows the kind
        cursor.execute(
            "insert into pgbeat.periodic_task (name, task, schedule, planned_revision, next_run_at) values "
            "('new', 'app.probe', 'moon: full', 0, null), ('planned', 'app.probe', 'moon: full', 1, now())"
        )
    beat = cluster.beat(settings={"pgbeat_lease": 1})
    eventually(lambda: len(jobs(cluster.database, "known")) >= 4, 20, "it works")

    unknown = "select problem from pgbeat.periodic_task where name <> 'known'"
    assert [None, None] == [row["problem"] for row in sql(cluster.database, unknown)]
    left = "Cannot plan {!r} with this version; a newer beat may: 'moon: full': "
    assert [1, 1] == [beat.log.count(left.format(name)) for name in ("new", "planned")]

    sql(cluster.database, "update pgbeat.schema_version set version = %(version)s", version=latest())
    for name in ("new", "planned"):
        beat.wait_for_log(f"Cannot plan '{name}': 'moon: full': ", 10)
    assert all(row["problem"] for row in sql(cluster.database, unknown))


def test_a_beat_that_starts_on_a_current_schema_takes_no_heavy_lock(cluster: Cluster) -> None:
    """A beat starts and works while an open transaction has read every table."""
    reader = psycopg2.connect(cluster.database)
    tables = sql(
        cluster.database,
        "select relname from pg_class where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p')",
    )
    for table in tables:
        reader.cursor().execute(f"lock table pgbeat.{table['relname']} in access share mode")
    insert(cluster.database, "a", next_run_at="2026-01-01T00:00:00Z", schedule=None)

    cluster.beat()

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "it works")
    reader.close()


def test_a_beat_with_another_driver_works(cluster: Cluster) -> None:
    insert(cluster.database, "a", "every 1s", overlap="allow")
    url = cluster.database.replace("postgresql://", "postgresql+psycopg://")
    cluster.beat(environment={"PGBEAT_URL": url})

    eventually(lambda: broker.depth(cluster.broker) >= 3, 15, "three ticks")
    assert {1} == {job["sends"] for job in jobs(cluster.database) if job["state"] != "pending"}


def test_two_schemas_in_one_database_do_not_see_each_other(cluster: Cluster) -> None:
    insert(cluster.database, "ours", next_run_at="2026-01-01T00:00:00Z", schedule=None)
    cluster.beat(settings={"pgbeat_schema": "jobs"}).wait_for_log("works on", 20)
    time.sleep(1.5)
    assert 0 == broker.depth(cluster.broker)
    sql(
        cluster.database,
        "insert into jobs.periodic_task (name, task, next_run_at) values ('theirs', 'elsewhere.task', now())",
    )

    eventually(lambda: broker.depth(cluster.broker) == 1, 10, "theirs alone")
    assert ["theirs"] == [message.headers["periodic_task_name"] for message in broker.drain(cluster.broker)]


OURS = {  # what each public name of Celery's class is here; see docs/celery.md
    "declares": {"add", "update_from_dict", "merge_inplace", "schedule", "get_schedule", "set_schedule"},
    "its own way": {"setup_schedule", "tick", "apply_async", "close", "info", "install_default_entries", "reserve"},
    "Celery's, and used": {"apply_entry", "send_task", "sync", "connection", "producer", "Entry", "max_interval"},
    "Celery's, and used by nothing here": {"populate_heap", "adjust", "is_due", "schedules_equal", "should_sync"},
    "a number, or the logger": {"sync_every", "sync_every_tasks", "logger"},
}


def test_each_public_name_of_celerys_scheduler_is_accounted_for() -> None:
    """A name that a later Celery adds has to be looked at."""
    known = set().union(*OURS.values())
    names = {name for name in vars(celery.beat.Scheduler) if not name.startswith("_")}

    assert set() == names - known
    assert OURS["declares"] | OURS["its own way"] <= vars(Scheduler).keys()


def test_the_methods_that_celery_calls_without_a_cycle_work(migrated_database: str) -> None:
    app = app_of(pgbeat_url=migrated_database, beat_sync_every=2)
    sent: list[dict[str, Any]] = []

    @app.task(name="shop.sync", shared=False)
    def sync() -> None: ...

    sync.apply_async = lambda *_, **options: sent.append(options)
    scheduler = Scheduler(app, schedule=(given := {"foo": "bar"}))
    assert scheduler.data is given
    assert 2 == scheduler.sync_every_tasks

    entry = scheduler.Entry("a", "shop.sync", schedule=30, args=None, kwargs=None, app=app)
    assert scheduler._maybe_entry("a", entry) is entry
    for each in (scheduler, celery.beat.Scheduler(app, lazy=True)):
        each.apply_async(entry)
        each.apply_async(scheduler.Entry("b", "shop.sync", schedule=30, options={"headers": {"x": 1}}, app=app))

    ours, theirs = sent[:2], sent[2:]
    assert [one.get("headers") for one in theirs] == [one.get("headers") for one in ours]
    assert 1 == ours[1]["headers"]["x"]
    assert scheduler.schedules_equal({"a": entry}, {"a": entry})
    assert not scheduler.schedules_equal({"a": entry}, {"b": entry})
    scheduler.sync()
    scheduler.close()
    assert "producer" not in vars(scheduler)
    assert "connection" not in vars(scheduler)
