"""Two who change one definition at the same time: each change is recorded as it was, in the order of the commits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.session import Session
from tests.harness.transactions import Attempt, Transaction


@pytest.fixture
def session(migrated_database: str) -> Session:
    made = Session(migrated_database)
    made.insert("nightly", schedule="every 5m")
    return made


@pytest.fixture
def author(migrated_database: str) -> Iterator[Transaction]:
    made = Transaction(migrated_database)
    yield made
    made.close()


@pytest.fixture
def other(migrated_database: str) -> Iterator[Transaction]:
    made = Transaction(migrated_database)
    yield made
    made.close()


def entries(session: Session) -> list[tuple[str, str | None, str | None]]:
    rows = session.rows(
        "select action, before ->> 'queue' as old, after ->> 'queue' as new from pgbeat.change order by id"
    )
    return [(row["action"], row["old"], row["new"]) for row in rows]


def test_of_two_editors_the_second_one_s_entry_begins_where_the_first_one_s_ends(
    store: BeatQueries, session: Session, author: Transaction, other: Transaction
) -> None:
    author.execute("update pgbeat.periodic_task set queue = 'first'")
    second = Attempt(lambda: other.execute("update pgbeat.periodic_task set queue = 'second'")).waits_for(
        author, store.database
    )
    author.commit()
    second.answer()
    other.commit()

    assert [("created", None, None), ("changed", None, "first"), ("changed", "first", "second")] == entries(session)


def test_a_revert_that_waits_for_an_edit_undoes_that_edit_too(
    store: BeatQueries, session: Session, author: Transaction, other: Transaction
) -> None:
    session.rows("update pgbeat.periodic_task set queue = 'second'")
    author.execute("update pgbeat.periodic_task set queue = 'third', priority = 3")
    reverting = Attempt(lambda: other.execute("select pgbeat.revert('nightly', 1)")).waits_for(author, store.database)
    author.commit()
    reverting.answer()
    other.commit()

    row = session.task("nightly")
    assert (None, None, 4) == (row["queue"], row["priority"], row["revision"])
    assert ("changed", "third", None) == entries(session)[-1]


def test_of_two_who_make_a_removed_row_again_one_does_and_the_other_finds_it(
    store: BeatQueries, session: Session, author: Transaction, other: Transaction
) -> None:
    session.rows("delete from pgbeat.periodic_task")
    removal = session.value("select max(id) from pgbeat.change")
    author.execute(f"select pgbeat.revert('nightly', change => {removal})")
    second = Attempt(lambda: other.execute(f"select pgbeat.revert('nightly', change => {removal})")).waits_for(
        author, store.database
    )
    author.commit()
    second.answer()
    other.commit()

    assert ["created", "removed", "created"] == [action for action, _, _ in entries(session)]
    assert "every 5m" == session.task("nightly")["schedule"]
