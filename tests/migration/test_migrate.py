"""Bringing a schema to this package's version: from many processes at once, beside other schemas, without a lock."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg2
import pytest
from sqlalchemy.engine import Engine, make_url

from celery_pgbeat.errors import DatabaseBusy, NotPermitted, SchemaMissing, SchemaTooNew
from celery_pgbeat.postgres import migrate as module
from celery_pgbeat.postgres.engine import create_engine
from celery_pgbeat.postgres.migrate import (
    MIN_COMPATIBLE,
    Version,
    check,
    checksum,
    current,
    definitions,
    latest,
    migrate,
    migrations,
)
from celery_pgbeat.postgres.statements import rendered
from tests.harness.session import Session
from tests.harness.wait import eventually

MIGRATE = """
import sys
from celery_pgbeat.postgres.engine import create_engine
from celery_pgbeat.postgres.migrate import migrate
print(migrate(create_engine(sys.argv[1])))
"""
PATIENCE = 60.0  # seconds for four interpreters to start on a busy machine
LOCK = zlib.crc32(b"celery-pgbeat migrate pgbeat")


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    made = create_engine(database)
    yield made
    made.dispose()


@pytest.fixture
def impatient_engine(database: str) -> Iterator[Engine]:
    """Its statements fail where they would have to wait for somebody's lock."""
    made = create_engine(f"{database}{'&' if '?' in database else '?'}options=-c%20lock_timeout%3D500ms")
    yield made
    made.dispose()


def version(engine: Engine, schema: str = "pgbeat") -> Version:
    with engine.connect() as connection:
        return current(connection, schema)


def test_an_empty_database_has_no_version(engine: Engine) -> None:
    assert version(engine) == Version(0, 0)
    with pytest.raises(SchemaMissing, match=r"^The database has no pgbeat schema 'pgbeat' yet: run"):
        check(engine, "pgbeat")


def test_an_empty_database_gets_every_migration_and_a_current_one_none(engine: Engine) -> None:
    assert migrate(engine) == len(list(migrations()))
    assert version(engine).version == latest()
    assert check(engine, "pgbeat") == version(engine)

    assert migrate(engine) == 0


def test_of_four_processes_on_an_empty_database_one_migrates_and_none_fails(database: str) -> None:
    gate = Session(database)
    gate.rows("select pg_advisory_lock(%s)", LOCK)
    processes = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, database], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    try:
        eventually(
            lambda: gate.value(
                "select count(*) = 4 from pg_stat_activity "
                "where datname = current_database() and query like 'select pg_try_advisory_xact_lock%'"
            ),
            PATIENCE,
            "the four do not stand at the gate",
        )
        gate.rows("select pg_advisory_unlock(%s)", LOCK)
        outcomes = [process.communicate(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()

    told = {line for _, errors in outcomes for line in errors.decode().splitlines()}
    assert [] == [line for line in told if not line.startswith("Waiting to migrate the schema 'pgbeat': ")]
    assert [0] * 3 + [len(list(migrations()))] == sorted(int(applied) for applied, _ in outcomes)
    assert gate.value("select count(*) from pgbeat.schema_version") == 1


def test_a_current_schema_takes_no_lock_that_blocks_other_sessions(
    database: str, engine: Engine, impatient_engine: Engine
) -> None:
    migrate(engine)
    others = Session(database)
    others.rows("select pg_advisory_lock(%s)", LOCK)
    others.rows("begin")
    for row in others.rows("select tablename from pg_tables where schemaname = 'pgbeat'"):
        others.rows(f"lock table pgbeat.{row['tablename']} in access share mode")  # what every SELECT holds

    assert migrate(impatient_engine) == 0


def test_a_migration_waits_for_another_one_for_a_while_and_names_its_session(
    database: str, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LOGGED_AFTER", 0.1)
    monkeypatch.setattr(module, "LOCK_WITHIN", 0.5)
    migrate(engine)
    others = Session(database)
    others.rows("set application_name = E'squat\\x1bter'")
    others.rows("update pgbeat.schema_version set definitions = null")
    others.rows("begin")
    others.rows("lock table pgbeat.schema_version in exclusive mode")
    who = f"the session {others.value('select pg_backend_pid()')} of '{others.value('select current_user')}' ('squat"

    with pytest.raises(DatabaseBusy, match=re.escape(f"within 0.5 s: {who}")) as error:
        migrate(engine)

    assert str(error.value).isprintable()
    assert [True] == [f"Waiting to migrate the schema 'pgbeat': {who}" in text for text in caplog.messages]
    others.rows("rollback")
    migrate(engine)
    assert latest() == version(engine).version


def test_an_advisory_lock_of_a_stranger_keeps_no_schema_from_being_brought_up_to_date(
    database: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_WITHIN", 0.5)
    migrate(engine)
    stranger = Session(database)
    stranger.rows("update pgbeat.schema_version set definitions = null")
    stranger.rows("select pg_advisory_lock(%s)", LOCK)

    migrate(engine)

    assert version(engine).has_our_definitions
    assert version(engine).definitions is not None


def test_a_schema_that_a_newer_package_made_incompatible_is_refused(database: str, engine: Engine) -> None:
    migrate(engine)
    session = Session(database)
    session.rows("update pgbeat.schema_version set version = %s, min_compatible = %s", latest() + 2, latest() + 1)

    with pytest.raises(SchemaTooNew) as refused:
        migrate(engine)

    assert str(refused.value) == (
        f"The pgbeat schema 'pgbeat' is at version {latest() + 2} and needs packages from {latest() + 1} on, "
        f"this package knows up to {latest()}: upgrade celery-pgbeat on this node."
    )
    assert version(engine) == (latest() + 2, latest() + 1, checksum())


def test_a_newer_schema_that_is_compatible_is_left_as_it_is(database: str, engine: Engine) -> None:
    migrate(engine)
    Session(database).rows("update pgbeat.schema_version set version = version + 1")

    assert migrate(engine) == 0
    assert version(engine).version == latest() + 1


def test_a_schema_of_this_version_with_other_definitions_gets_those_of_this_package(
    database: str, engine: Engine
) -> None:
    migrate(engine)
    session = Session(database)
    session.rows("drop function pgbeat.finish_many")
    session.rows("update pgbeat.schema_version set definitions = null")
    assert not check(engine, "pgbeat").has_our_definitions

    assert migrate(engine) == 0

    assert session.value("select count(*) from pg_proc where proname = 'finish_many'") == 1
    assert version(engine) == (latest(), MIN_COMPATIBLE, checksum())


def test_a_newer_schema_keeps_its_definitions(database: str, engine: Engine) -> None:
    migrate(engine)
    session = Session(database)
    session.rows("update pgbeat.schema_version set version = version + 1, definitions = 'newer'")

    assert migrate(engine) == 0

    assert version(engine).definitions == "newer"


def test_a_migration_that_fails_leaves_nothing(database: str, engine: Engine) -> None:
    session = Session(database)
    session.rows("create schema pgbeat")
    session.rows("create table pgbeat.finished_job (mine int)")

    with pytest.raises(Exception, match="finished_job"):
        migrate(engine)

    assert session.rows("select tablename from pg_tables where schemaname = 'pgbeat'") == [
        {"tablename": "finished_job"}
    ]
    session.rows("drop table pgbeat.finished_job")
    assert migrate(engine) == len(list(migrations()))


def test_a_user_without_the_right_to_migrate_gets_the_grant_and_locks_nothing(
    database: str, unique_name: Callable[[], str]
) -> None:
    user, name = unique_name(), make_url(database).database
    as_user = create_engine(
        make_url(database).set(username=user, password="secret").render_as_string(hide_password=False)
    )
    owner = create_engine(database)

    def run(statement: str) -> Any:
        with owner.connect() as connection:
            return connection.exec_driver_sql(statement)

    run(f"create role {user} login password 'secret'")
    try:
        with pytest.raises(NotPermitted, match=f"grant create on database {name} to {user}\\."):
            migrate(as_user)
        run("create schema pgbeat")
        with pytest.raises(NotPermitted, match=f"grant usage, create on schema pgbeat to {user}\\."):
            migrate(as_user)
        migrate(owner)
        run(f"grant usage, create on schema pgbeat to {user}")
        run(f"grant all on all tables in schema pgbeat to {user}")
        assert 0 == migrate(as_user)  # there is nothing to do
        run("update pgbeat.schema_version set definitions = 'older'")
        with owner.connect() as connection, connection.execution_options(isolation_level="READ COMMITTED").begin():
            connection.exec_driver_sql("select from pgbeat.periodic_task")  # a lock of ours would wait for this
            with pytest.raises(NotPermitted, match=f"tables belong to \\w+: grant \\w+ to {user}\\."):
                migrate(as_user)
        run(f"grant create on database {name} to {user}")
        assert 1 <= migrate(as_user, "jobs")
    finally:
        run(f"drop owned by {user} cascade")
        run(f"drop role {user}")
        as_user.dispose()
        owner.dispose()


@pytest.mark.parametrize("schema", ["jobs", "select", "_9"])
def test_a_schema_of_another_name_works_beside_and_sees_nothing_of_the_first(
    database: str, engine: Engine, schema: str
) -> None:
    migrate(engine)
    migrate(engine, schema)
    session = Session(database)

    session.rows(f"""select "{schema}".schedule('a', 'app.probe', '@daily')""")
    job = session.value(f"""select "{schema}".trigger('a')""")
    session.rows(f"""select "{schema}".pause('a')""")
    session.rows(f"""update "{schema}".periodic_task set schedule = 'every 1h'""")

    assert session.rows(f'select id from "{schema}".job') == [{"id": job}]
    assert session.rows("select * from pgbeat.periodic_task") == []
    assert session.rows("select * from pgbeat.job") == []
    assert session.refusal(f"""select "{schema}".schedule('a', 'app.probe', 'nonsense')""").pgcode == "22023"


def test_nothing_in_a_schema_of_another_name_names_the_default_one(database: str, engine: Engine) -> None:
    migrate(engine, "jobs")
    session = Session(database)

    assert session.value("select to_regnamespace('pgbeat') is null")
    sources = session.rows("select proname, prosrc from pg_proc where pronamespace = 'jobs'::regnamespace")
    assert len(sources) > 10
    # The settings pgbeat.who and pgbeat.reason of a session have these names in every schema.
    named = re.compile(r"""pgbeat"?\.(?!(who|reason)\b)|"pgbeat"|notify\('pgbeat'""")
    assert [row["proname"] for row in sources if named.search(row["prosrc"])] == []


def test_a_schema_of_another_name_wakes_its_own_beats_only(database: str, engine: Engine) -> None:
    migrate(engine, "jobs")
    migrate(engine)
    session = Session(database)

    insert = "insert into {}.periodic_task (name, task, schedule) values ('a', 'app.probe', '@daily')"
    assert session.notified_by(lambda: session.rows(insert.format("pgbeat")))
    assert not session.notified_by(lambda: session.rows(insert.format("jobs")))


def test_the_migrations_are_numbered_in_their_order() -> None:
    numbers = [number for number, _ in migrations()]

    assert sorted(set(numbers)) == numbers


def test_a_schema_of_an_older_package_keeps_its_rows_and_gets_what_is_new(
    database: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(engine)
    session = Session(database)
    session.rows("select pgbeat.schedule('a', 'app.probe', '@daily')")
    session.rows("update pgbeat.schema_version set definitions = 'older'")
    session.rows("drop function pgbeat.finish_many")
    newer = (latest() + 1, "alter table {schema}.periodic_task add column note text default 'new'")
    monkeypatch.setattr(module, "migrations", lambda: iter([*migrations(), newer]))
    module.latest.cache_clear()
    try:
        assert migrate(engine) == 1
        assert version(engine) == (newer[0], MIN_COMPATIBLE, checksum())
    finally:
        monkeypatch.undo()
        module.latest.cache_clear()

    kept = session.row("select name, schedule, note from pgbeat.periodic_task")
    assert {"name": "a", "schedule": "@daily", "note": "new"} == kept
    assert session.value("select count(*) from pg_proc where proname = 'finish_many'") == 1


def test_the_first_line_of_a_migration_says_whether_it_may_run_before_the_new_code() -> None:
    """One that may not is the last one that all nodes must know."""
    said = {number: re.match(r"-- .* May (not )?run before the new code", text) for number, text in migrations()}

    assert None not in said.values()
    assert max([1, *(number for number, may in said.items() if may and may[1])]) == MIN_COMPATIBLE


def test_every_migration_is_as_good_for_an_older_client_encoding_and_any_search_path(database: str) -> None:
    """The text is sent as it is: a session with its own settings must build the same schema."""
    with closing(psycopg2.connect(database)) as connection:
        cursor: Any = connection.cursor()
        cursor.execute("set search_path = pg_catalog; set standard_conforming_strings = off; create schema pgbeat")
        for _, text in (*migrations(), *definitions()):
            cursor.execute(rendered(text, "pgbeat"))
        cursor.execute("select pgbeat.schedule('a', 'app.probe', '@daily')")
        connection.rollback()


def test_a_check_reads_no_migration_s_text(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(engine)
    read: list[str] = []
    for name in ("migrations", "definitions"):
        monkeypatch.setattr(module, name, lambda name=name: iter(read.append(name) or ()))

    check(engine, "pgbeat")
    assert [] == read
