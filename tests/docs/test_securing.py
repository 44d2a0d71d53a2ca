"""The statements of docs/securing.md do what the page says."""

from __future__ import annotations

from tests.docs.pages import ROOT, blocks
from tests.harness.session import Session

TABLES = (
    "select relname::text from pg_class "
    "where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition"
)


def mentions(session: Session, word: str) -> set[str]:
    """Return the tables and views of the schema that have a word anywhere."""
    tables = [row["relname"] for row in session.rows(TABLES)]
    found = "select count(*) from pgbeat.{} as stored where stored::text like %s"
    return {table for table in tables if session.value(found.format(table), f"%{word}%")}


def test_one_person_s_data_is_erased(migrated_database: str) -> None:
    session = Session(migrated_database)
    session.rows("select set_config('pgbeat.who', 'anna', false)")
    call = "values ('a', 'app.probe', '{\"patient\": 4711}'), ('b', 'app.probe', '{\"patient\": 12}')"
    session.rows(f"insert into pgbeat.periodic_task (name, task, kwargs) {call}")
    session.rows(
        "insert into pgbeat.finished_job (id, periodic_task, scheduled_for, origin, state, task, created_at, "
        "finished_at, arguments, error, owner, note) "
        "select gen_random_uuid(), 'a', now(), 'manual', 'failed', 'app.probe', now(), now(), "
        "'{\"kwargs\": {\"patient\": 4711}}', 'KeyError: 4711', 'anna', 'called her'"
    )
    session.rows("reset pgbeat.who")
    assert {"periodic_task", "finished_job", "change"} <= mentions(session, "4711")
    assert {"finished_job", "change"} <= mentions(session, "anna")

    (block,) = [block for block in blocks(ROOT / "docs" / "securing.md") if block.language == "sql"]
    assert [] == session.rows(block.text)

    assert set() == mentions(session, "4711")
    assert set() == mentions(session, "anna")
    assert set() == mentions(session, "called her")
    assert {"patient": 12} == session.task("b")["kwargs"]
