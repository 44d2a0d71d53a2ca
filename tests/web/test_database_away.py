"""The database away, busy, empty or older: a page says so, tells no address, and comes back by itself."""

from __future__ import annotations

import json
import re

import pytest

from celery_pgbeat.embedded import Postgres
from celery_pgbeat.web import dashboard, reading
from celery_pgbeat.web.shared import Pace
from tests.harness.databases import migrate_database
from tests.harness.session import Session
from tests.harness.situations import Situation
from tests.harness.visitor import Visitor
from tests.harness.wait import eventually

PAGES = ("/", "/tasks", "/task?name=x", "/jobs", f"/job?id={'0' * 32}", "/groups", "/work", "/nodes", "/problems")


@pytest.mark.parametrize("path", PAGES)
def test_where_the_database_does_not_answer_the_page_says_so_and_tries_again(path: str) -> None:
    seen = Visitor(dashboard("postgresql://anna:hush@127.0.0.1:1/shop")).open(path)

    assert 503 == seen.status
    assert "The database does not answer. Beats wait for it too, and send" in seen.text
    assert "5" == seen.headers["retry-after"]
    assert ("meta", {"http-equiv": "refresh", "content": "5"}) in seen.tags
    assert not [secret for secret in ("anna", "hush", "127.0.0.1", "/shop") if secret in seen.text]


def test_it_comes_back_with_the_database(own_postgres: Postgres) -> None:
    migrate_database(own_postgres.url)
    visitor = Visitor(dashboard(own_postgres.url, pace=Pace(every=0.05)))
    assert 200 == visitor.open("/").status

    own_postgres.shut_down()
    assert (503, 503) == (visitor.open("/tasks").status, eventually(lambda: away(visitor), 20, "the page is not away"))
    own_postgres.start()

    eventually(lambda: visitor.open("/tasks").status == 200, 20, "the page does not come back")
    eventually(lambda: visitor.open("/").status == 200, 20, "the first page does not come back")


def away(visitor: Visitor) -> int | None:
    status = visitor.open("/").status
    return status if status == 503 else None


def test_an_open_page_is_told_that_the_database_is_away() -> None:
    visitor = Visitor(dashboard("postgresql://anna:hush@127.0.0.1:1/shop"))

    with visitor.client.stream("GET", "/events") as answer:
        lines = [line for line, _ in zip(answer.iter_lines(), range(4), strict=False)]

    assert "event: away" == lines[2]
    assert "The database does not answer." in json.loads(lines[3].removeprefix("data: "))["sentence"]


def test_a_statement_that_takes_too_long_is_ended(
    well: Situation, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BEGIN", (reading.BEGIN[0], "set local statement_timeout = '50ms'"))
    well.session.rows(
        "create or replace function pgbeat.shown(instant timestamptz) returns text language sql volatile "
        "as 'select pg_sleep(5)::text'"
    )
    well.plan()

    seen = visitor.open("/task", name="nightly")

    assert 503 == seen.status
    assert "The database took too long for this page and ended the statement." in seen.text


def test_a_database_without_the_schema_says_what_to_run(database: str) -> None:
    seen = Visitor(dashboard(database)).open("/")

    assert 503 == seen.status
    assert "run celery-pgbeat migrate" in seen.text


def test_a_user_without_rights_is_told_which_role_to_join(
    situation: Situation, reader_url: str, session: Session
) -> None:
    situation.plan()
    session.rows("revoke all on pgbeat.status from pgbeat_reader")

    seen = Visitor(dashboard(reader_url)).open("/tasks")

    assert 500 == seen.status
    assert "may not read this. Make it a member of the role pgbeat_reader." in seen.text


def test_a_fault_of_ours_shows_a_number_that_the_log_has(
    well: Situation, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("celery_pgbeat.web.pages.nodes.read_node", lambda _: {}["secret"])

    seen = visitor.open("/nodes")

    (number,) = re.findall(r"under error (\w+)", seen.text)
    assert 500 == seen.status
    assert "secret" not in seen.html
    assert f"A page of the dashboard could not be drawn: error {number}" in caplog.messages
    assert "KeyError" in caplog.text
