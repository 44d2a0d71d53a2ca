"""Settings of a database or a role change how Postgres writes values as text: what is read stays the same."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import psycopg2
import pytest
from click.testing import CliRunner
from psycopg import _queries, adapt, pq
from sqlalchemy.engine import make_url

from celery_pgbeat.api import PgBeat
from celery_pgbeat.cli import main
from celery_pgbeat.embedded.databases import drop_database
from celery_pgbeat.errors import DatabaseUnsuitable
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import create_engine, normalise_url
from celery_pgbeat.postgres.migrate import check, latest, migrate
from celery_pgbeat.postgres.statements import PARAMETER, files, statement
from celery_pgbeat.postgres.worker_queries import MinGapViolation, Start, WorkerQueries
from tests.harness.jobs import make_job
from tests.harness.role import Role
from tests.harness.ticks import LEASE, decided, planned

STATEMENTS = list(files().values())
UTC = timezone.utc
SILENCE = timedelta(seconds=30)
MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)

SETTINGS = [
    ("application_name", "the defaults"),
    ("intervalstyle", "iso_8601"),
    ("intervalstyle", "postgres_verbose"),
    ("intervalstyle", "sql_standard"),
    ("datestyle", "SQL, DMY"),
    ("datestyle", "German"),
    ("datestyle", "Postgres, MDY"),
    ("timezone", "Australia/Lord_Howe"),
    ("timezone", "<-03>+03:30"),
    ("extra_float_digits", "-15"),
    ("standard_conforming_strings", "off"),
    ("client_encoding", "latin1"),
    ("bytea_output", "escape"),
    ("quote_all_identifiers", "on"),
    ("default_transaction_isolation", "serializable"),
]
# How Postgres compares them: a month has 30 days, a year twelve months.
DURATIONS = {
    "0.000001 seconds": MICROSECOND,
    "1 day 02:03:04.000005": timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5),
    "3 months 1 day": timedelta(days=91),
    "2 days -00:00:00.5": timedelta(days=1, hours=23, minutes=59, seconds=59, microseconds=500_000),
    "90000:00:00": timedelta(hours=90_000),
    "99 years 11 months 29 days 23:59:59.999999": 100 * timedelta(days=360) - MICROSECOND,
}
START_AT = datetime(2026, 2, 1, 3, 4, 5, 678901, tzinfo=UTC)
NAME = "nächtlich €"


@pytest.fixture(params=SETTINGS, ids=lambda setting: f"{setting[0]}={setting[1]}")
def setting(request: pytest.FixtureRequest, migrated_database: str) -> str:
    """The URL of a database with that setting."""
    with closing(psycopg2.connect(migrated_database)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("select current_database()")
        (database,) = cursor.fetchone() or ("",)
        name, value = request.param
        values = [part.strip() for part in value.split(",")] if name == "datestyle" else [value]
        cursor.execute(f'alter database "{database}" set {name} = {", ".join(["%s"] * len(values))}', values)
    return migrated_database


@pytest.fixture(params=["psycopg2", "psycopg"])
def url(request: pytest.FixtureRequest, setting: str) -> str:
    driven = normalise_url(setting).set(drivername=f"postgresql+{request.param}")
    return driven.render_as_string(hide_password=False)


@pytest.fixture
def store(url: str) -> Iterator[BeatQueries]:
    made = BeatQueries(Database(url), "beat-a", LEASE)
    yield made
    made.database.close()


@pytest.fixture
def door(url: str) -> Iterator[PgBeat]:
    made = PgBeat(url=url)
    yield made
    made.close()


@pytest.fixture
def shell(url: str) -> Callable[..., Any]:
    def run(*words: str) -> Any:
        result = CliRunner().invoke(main, ["--url", url, *words, "--json"])
        assert 0 == result.exit_code, result.output
        return json.loads(result.stdout)

    return run


def test_a_row_goes_through_the_statements_of_a_beat_as_it_is(store: BeatQueries, door: PgBeat) -> None:
    run, database = store.database.execute, store.database
    run(
        "insert into pgbeat.periodic_task "
        "(name, task, schedule, start_at, jitter, catchup_window, max_run_time, min_gap) values"
        " (%(name)s, 'app.probe', 'every 1h', %(start_at)s, '1 day 02:03:04.000005', '99 years 1 day -00:00:01', "
        "        '3 months 1 day', '1 day 00:00:00.000001')",
        {"name": NAME, "start_at": START_AT},
    )
    jitter, run_time = DURATIONS["1 day 02:03:04.000005"], DURATIONS["3 months 1 day"]

    (definition,) = store.unplanned(10)
    assert (NAME, START_AT, jitter) == (definition.name, definition.start_at, definition.jitter)
    due_at = datetime.now(UTC)
    store.plan([planned(definition, due_at)], "UTC")
    (due,) = store.mark(10)
    assert (NAME, START_AT, due_at, due_at) == (due.name, due.start_at, due.next_run_at, due.planned_for)
    assert (jitter, run_time) == (due.jitter, due.max_run_time)
    assert 99 * 360 * DAY + DAY - timedelta(seconds=1) == due.catchup_window
    (submitted,) = store.submit([decided(due)], "UTC", True, True)
    assert (NAME, True) == (submitted.name, submitted.made)
    store.give_back()
    (recovered,) = store.recover(10, SILENCE)
    assert (NAME, due_at, run_time) == (recovered.periodic_task, recovered.scheduled_for, recovered.max_run_time)
    assert {recovered.id} == store.confirm([(recovered.id, 1.5)]).jobs

    reports = WorkerQueries(database)
    assert reports.start_spaced(start := Start(recovered.id, 0, 0, uuid.uuid4(), "worker-a"), SILENCE) is True
    assert set() == reports.finish_many([])
    assert reports.retry(start, timedelta(seconds=1.5), "ünlucky")
    early = make_job(database, periodic_task=NAME, exclusive=False, min_gap=DAY + MICROSECOND)
    answer = reports.start_spaced(Start(early, 0, 0, uuid.uuid4(), "worker-a"), SILENCE)
    assert MinGapViolation(NAME, DAY + MICROSECOND) == answer
    assert due_at == door.get(NAME).last_run_at


def test_a_backfill_reads_its_row_as_it_is(store: BeatQueries, door: PgBeat) -> None:
    since = datetime.now(UTC) - timedelta(hours=3)
    door.schedule(NAME, "app.probe", "every 1h", jitter="1h30m", max_run_time="36h", start_at=since - 10 * DAY)
    door.backfill(NAME, since, since + timedelta(hours=1))

    filling = store.mark_backfill("UTC")

    assert filling is not None
    assert (timedelta(hours=1.5), timedelta(hours=36)) == (filling.jitter, filling.max_run_time)
    assert (since, since + timedelta(hours=1)) == (filling.since, filling.until)
    assert since == door.backfills(NAME)[0].since


def test_what_people_declare_comes_back_as_it_was(door: PgBeat, shell: Callable[..., Any]) -> None:
    columns: dict[str, Any] = {
        "jitter": timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5),
        "catchup_window": timedelta(days=40, microseconds=1),
        "min_gap": timedelta(seconds=55.5),
        "max_run_time": timedelta(days=100, minutes=30),
        "start_at": START_AT,
        "args": ["a\\b", "O'Hara", 1.1],
        "blackout": ['window: "ü"', "cron: 0 0 * * sat P2D"],
        "subject": 'back\\slash "quoted" NULL',
    }
    declared = door.schedule(NAME, "app.probe", "every 1h", **columns)

    assert columns == {name: getattr(declared, name) for name in columns}
    assert declared == door.schedule(NAME, "app.probe", "every 1h", **columns), "an equal one is found equal"
    assert declared == door.get(NAME) == door.list()[0]
    assert columns["jitter"] == door.pause(NAME).jitter == door.resume(NAME).jitter
    seconds = {"jitter": 93784.000005, "catchup_window": 3456000.000001, "min_gap": 55.5, "max_run_time": 8641800.0}
    (listed,) = shell("list")
    assert seconds == {name: listed[name] for name in seconds}
    assert START_AT == datetime.fromisoformat(listed["start_at"])
    assert declared.created_at == datetime.fromisoformat(shell("show", NAME)["created_at"])


def test_an_export_is_the_same_file(door: PgBeat, url: str) -> None:
    door.schedule(NAME, "app.probe", "every 1h", jitter="1h30m", min_gap="26h", start_at=START_AT)

    exported = CliRunner().invoke(main, ["--url", url, "export"])

    record = json.loads(exported.stdout)
    assert ("1h30m", "1d2h") == (record["jitter"], record["min_gap"])
    assert START_AT.isoformat() == record["start_at"]


def test_a_sentence_reads_the_same(store: BeatQueries) -> None:
    make_job(store.database, periodic_task=NAME, state="running", max_run_time=DAY + timedelta(hours=2), worker="web")
    for text in (
        "insert into pgbeat.periodic_task (name, task, schedule) values (%(name)s, 'app.probe', '0 3 1 1 *')",
        "update pgbeat.active_job set started_at = pgbeat.now(), attempt_at = pgbeat.now()",
        "insert into pgbeat.node (id, role, hostname, pid, version, tracking) "
        "values ('web', 'worker', 'web', 1, '1', true)",
    ):
        store.database.execute(text, {"name": NAME})

    (row,) = store.database.run("explain", name=NAME)

    assert "with a max_run_time of 1 day 02:00:00;" in row.sentence


def test_what_an_operator_reads_is_the_same(store: BeatQueries, door: PgBeat) -> None:
    door.schedule(NAME, "app.probe", "every 1h", max_run_time="90s", options={"countdown": 7.25})
    job = make_job(store.database, periodic_task=NAME)
    assert WorkerQueries(store.database).start(Start(job, 0, 0, uuid.uuid4(), "web"), SILENCE)
    store.database.execute("update pgbeat.active_job set started_at = created_at + interval '1.25 s'")

    operators = AdminQueries(store.database)
    longest = operators.longest_waits()
    assert {"max_run_time": timedelta(seconds=90), "countdown": timedelta(seconds=7.25)} == longest
    activity = operators.activity(60.0)
    assert timedelta(seconds=1.25) == activity["start_median"] == activity["start_worst"]
    store.database.execute("update pgbeat.periodic_task set next_run_at = pgbeat.now() - interval '26 hours'")
    raised = store.database.run("raise_alerts", beat="b", after=1, most=10, now=datetime.now(UTC), step=3600.0)
    assert 26 * 3600 == raised[0].late_by_microseconds // 1_000_000


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_a_setting_with_which_nothing_works_is_named_and_its_end_is_seen(role: Role, driver: str) -> None:
    engine = create_engine(role.url(driver))
    role.set("array_nulls", "off")

    for look in (check, migrate):
        with pytest.raises(DatabaseUnsuitable, match=r"^array_nulls is off, .*: alter role \w+ in database \w+ set "):
            look(engine, "pgbeat")

    role.set("array_nulls", "on")
    assert latest() == check(engine, "pgbeat").version
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "EUC_JP", "SQL_ASCII"])
def test_a_database_that_cannot_store_every_text_is_refused_with_its_encoding(
    database: str, unique_name: Callable[[], str], driver: str, encoding: str
) -> None:
    name = unique_name()
    url = make_url(database)
    with closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(f"create database {name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0")
    engine = create_engine(url.set(drivername=f"postgresql+{driver}", database=name).render_as_string(False))

    for look in (check, migrate):
        with pytest.raises(DatabaseUnsuitable, match=rf"^The database {name} has the encoding {encoding}, .* UTF8"):
            look(engine, "pgbeat")
    engine.dispose()
    drop_database(database, name)


@pytest.mark.parametrize("duration", DURATIONS)
def test_a_duration_is_as_long_as_postgres_takes_it_for_when_it_compares(migrated_database: str, duration: str) -> None:
    with closing(psycopg2.connect(migrated_database)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "select pgbeat.microseconds(%(duration)s::interval), "
            "%(duration)s::interval = make_interval(secs => 0) "
            "+ pgbeat.microseconds(%(duration)s::interval) * interval '1 us'",
            {"duration": duration},
        )
        assert (DURATIONS[duration] // MICROSECOND, True) == cursor.fetchone()


def test_no_statement_returns_an_interval_or_a_float(migrated_database: str) -> None:
    with psycopg.connect(migrated_database, autocommit=True) as connection:
        kinds = {path.stem: result_types(connection, statement(path.stem, "pgbeat")) for path in STATEMENTS}

    assert {"text", "timestamptz"} <= kinds["mark"]
    assert {} == {name: found for name, found in kinds.items() if found & {"interval", "float4", "float8"}}


def result_types(connection: psycopg.Connection[Any], text: str) -> set[str]:
    """Return the types of a statement's columns, as Postgres describes them."""
    query = _queries.PostgresQuery(adapt.Transformer(connection))
    query.convert(text, dict.fromkeys(PARAMETER.findall(text)))
    prepared = connection.pgconn.prepare(b"", query.query)
    assert pq.ExecStatus.COMMAND_OK == prepared.status, prepared.get_error_message()
    described = connection.pgconn.describe_prepared(b"")
    oids = [described.ftype(place) for place in range(described.nfields)]
    return {connection.adapters.types[oid].name for oid in oids if connection.adapters.types.get(oid)}
