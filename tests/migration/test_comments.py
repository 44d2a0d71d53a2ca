"""Whoever looks at the schema with a database tool is told what everything public means."""

from __future__ import annotations

import pytest

from tests.harness.session import Session

DOOR = ["now", "schedule", "unschedule", "pause", "resume", "trigger", "explain", "known_options"]


@pytest.fixture
def session(migrated_database: str) -> Session:
    return Session(migrated_database)


def test_every_table_and_view_says_what_it_is(session: Session) -> None:
    silent = session.rows(
        "select relname from pg_class where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p', 'v') "
        "and not relispartition and obj_description(oid, 'pg_class') is null"
    )

    assert silent == []
    assert session.value("select obj_description('pgbeat.job'::regclass, 'pg_class')").startswith("Every submission")


def test_every_column_of_a_public_table_or_view_says_what_it_holds(session: Session) -> None:
    columns = session.rows(
        "select relname, attname, col_description(attrelid, attnum) as said "
        "from pg_attribute join pg_class on pg_class.oid = attrelid "
        "where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition "
        "and attnum > 0 and not attisdropped and obj_description(attrelid, 'pg_class') not like 'Internal%'"
    )

    assert len(columns) > 70
    assert [f"{row['relname']}.{row['attname']}" for row in columns if row["said"] is None] == []


@pytest.mark.parametrize("name", DOOR)
def test_every_public_sql_function_has_a_comment(session: Session, name: str) -> None:
    said = session.value(
        "select obj_description(oid, 'pg_proc') from pg_proc where proname = %s "
        "and pronamespace = 'pgbeat'::regnamespace",
        name,
    )

    assert said is not None
    assert said.endswith(".")
