"""Two authors at one moment: no circle of tasks after each other, or of groups that wait for each other, is made."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from psycopg2.errors import InvalidParameterValue, SerializationFailure

from tests.harness.session import Session, reason

DEFINES = {
    "after": "insert into pgbeat.periodic_task (name, task, schedule) values (%s, 'app.probe', 'every 1h')",
    "waits_for": "insert into pgbeat.task_group (name) values (%s)",
}
WRITES = {
    "after": "update pgbeat.periodic_task set after = array[%s] where name = %s",
    "waits_for": "update pgbeat.task_group set waits_for = array[%s] where name = %s",
}


@pytest.fixture
def authors(migrated_database: str) -> Iterator[tuple[Session, Session]]:
    pair = Session(migrated_database), Session(migrated_database)
    yield pair
    for one in pair:
        one.connection.close()


@pytest.mark.parametrize("column", WRITES)
@pytest.mark.parametrize(
    ("isolation", "refusal"),
    [
        ("read committed", InvalidParameterValue),
        ("repeatable read", SerializationFailure),
        ("serializable", SerializationFailure),
    ],
)
def test_of_two_authors_who_would_close_a_circle_the_second_is_refused(
    authors: tuple[Session, Session], column: str, isolation: str, refusal: type[psycopg2.Error]
) -> None:
    for name in ("a", "b"):
        authors[0].rows(DEFINES[column], name)
    for one in authors:  # each has its snapshot before the other writes
        one.rows(f"begin isolation level {isolation}")
        one.rows("select from pgbeat.periodic_task")

    authors[0].rows(WRITES[column], "b", "a")
    authors[0].rows("commit")
    refused = authors[1].refusal(WRITES[column], "a", "b")

    assert isinstance(refused, refusal), refused


@pytest.mark.parametrize("column", WRITES)
def test_an_author_under_repeatable_read_who_tries_again_is_told_of_the_circle_or_has_written(
    authors: tuple[Session, Session], column: str
) -> None:
    for name in ("a", "b", "c"):
        authors[0].rows(DEFINES[column], name)
    authors[1].rows("begin isolation level repeatable read")
    authors[1].rows("select from pgbeat.periodic_task")
    authors[0].rows(WRITES[column], "b", "a")
    assert isinstance(authors[1].refusal(WRITES[column], "a", "c"), SerializationFailure)
    authors[1].rows("rollback")

    authors[1].rows("begin isolation level repeatable read")
    authors[1].rows(WRITES[column], "a", "c")
    refused = authors[1].refusal(WRITES[column], "c", "b")

    assert "c" in str(refused)
    assert isinstance(refused, InvalidParameterValue), refused


def test_a_transaction_of_many_rows_writes_once_who_the_author_is(authors: tuple[Session, Session]) -> None:
    author, _ = authors
    author.rows(DEFINES["after"], "first")
    author.rows("begin")
    before = author.value("select n_tup_upd from pg_stat_xact_user_tables where relname = 'last_author'")
    author.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, after) "
        "select 'row-' || n, 'app.probe', 'every 1h', array['first'] from generate_series(1, 100) n"
    )
    author.rows("update pgbeat.periodic_task set after_condition = 'finish' where after is not null")
    written = author.value("select n_tup_upd from pg_stat_xact_user_tables where relname = 'last_author'")
    author.rows("rollback")

    assert 1 == written - before


@pytest.mark.parametrize("column", WRITES)
def test_an_author_waits_five_seconds_for_another_and_is_told_which_session_it_is(
    authors: tuple[Session, Session], column: str
) -> None:
    for name in ("a", "b"):
        authors[0].rows(DEFINES[column], name)
    authors[0].rows("begin")
    authors[0].rows(WRITES[column], "b", "a")

    refused = authors[1].refusal(WRITES[column], "a", "b")

    assert "55P03" == refused.pgcode
    assert f", and has not ended for 5 seconds: the session {authors[0].pid} of 'postgres' (" in reason(refused)
    authors[0].rows("commit")
    assert isinstance(authors[1].refusal(WRITES[column], "a", "b"), InvalidParameterValue)


@pytest.mark.parametrize("column", WRITES)
def test_advisory_locks_of_a_stranger_keep_no_author_waiting(authors: tuple[Session, Session], column: str) -> None:
    stranger, author = authors
    for lock in ("periodic_task.after", "task_group.waits_for", "make_days", "prune"):
        stranger.rows("select pg_advisory_lock(hashtext(%s))", f'"pgbeat".{lock}')
    author.rows("set statement_timeout = '3s'")

    for name in ("a", "b"):
        author.rows(DEFINES[column], name)
    author.rows(WRITES[column], "b", "a")

    assert 0 == author.value("select pgbeat.prune('30 days')")
    author.rows(
        "drop table pgbeat.finished_job_" + author.value("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")
    )
    assert 1 <= author.value("select pgbeat.make_days()")
