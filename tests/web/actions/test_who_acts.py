"""Actions by their forms: which person Postgres records, and when they cannot be done."""

from __future__ import annotations

from sqlalchemy.engine import make_url

from celery_pgbeat.web import dashboard
from tests.harness.situations import Situation
from tests.harness.transactions import Transaction
from tests.harness.visitor import Visitor

TASK = "/task?name=nightly"


def test_postgres_is_told_who_changes_something_until_the_transaction_ends(
    well: Situation, anna: Visitor, nameless: Visitor
) -> None:
    well.plan()
    well.session.rows("create table public.said (who text, patience text)")
    well.session.rows(
        "create function public.say() returns trigger language plpgsql as $$ begin "
        "insert into public.said values (current_setting('pgbeat.who', true), current_setting('lock_timeout')); "
        "return null; end $$"
    )
    well.session.rows(
        "create trigger say after update on pgbeat.periodic_task for each row "
        "when (old.enabled <> new.enabled) execute function public.say()"
    )

    anna.act("/pause?name=nightly")
    nameless.act("/resume?name=nightly")
    well.session.rows("update pgbeat.periodic_task set enabled = false")

    said = well.session.rows("select * from public.said")
    well.session.rows("drop trigger say on pgbeat.periodic_task")
    well.session.rows("drop table public.said")
    assert ["anna", "", None] == [row["who"] for row in said]
    assert ["3s", "3s", "0"] == [row["patience"] for row in said]


def test_a_row_that_another_transaction_locks_is_given_up_after_three_seconds(
    well: Situation, anna: Visitor, shared_database: str
) -> None:
    well.plan()
    other = Transaction(shared_database)
    other.execute("select 1 from pgbeat.periodic_task for update")
    seen = anna.act("/pause?name=nightly", reason="stocktaking")
    other.rollback()

    assert (503, "stocktaking") == (seen.status, seen.fields["reason"])
    assert "Another transaction has locked what you want to change. Nothing was changed: send it again." in seen.text
    assert 303 == anna.send("/pause?name=nightly", {**seen.fields, "step": "do"}).status


def test_while_the_database_is_away_the_form_keeps_what_was_typed(well: Situation, shared_database: str) -> None:
    well.plan()
    app = dashboard(shared_database, may_change=lambda _: "anna")
    visitor = Visitor(app)
    form = visitor.open("/pause?name=nightly")
    away = make_url(shared_database).set(port=1)
    for database in (app._site._reader.database, app._site._writer.beat.database):
        database.engine.dispose()
        database.engine = type(database)(away.render_as_string(hide_password=False), "pgbeat").engine

    seen = visitor.send("/pause?name=nightly", {**form.fields, "reason": "stocktaking", "step": "do"})

    assert (503, "stocktaking") == (seen.status, seen.fields["reason"])
    assert "The database does not answer." in seen.text


def test_the_name_of_the_person_is_in_every_page_and_what_may_be_done_has_a_link(
    well: Situation, anna: Visitor, visitor: Visitor
) -> None:
    well.plan()

    assert "you may change things, as anna" in anna.open("/tasks").text
    assert {"Trigger…", "Pause…", "Backfill…"} <= set(anna.open(TASK).text.split())
    assert "read-only" in visitor.open(TASK).text
    assert "Pause…" not in visitor.open(TASK).text


async def _of_session(request) -> str | bool:  # type: ignore[no-untyped-def]
    return str(request.headers.get("x-user", "")) or False


def test_the_function_may_be_asynchronous(well: Situation, shared_database: str) -> None:
    well.plan()
    visitor = Visitor(dashboard(shared_database, may_change=_of_session))

    assert 403 == visitor.open("/pause?name=nightly").status
    visitor.client.headers["X-User"] = "ben"
    assert 303 == visitor.act("/pause?name=nightly").status
