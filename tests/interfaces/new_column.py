"""What a column of the table must be seen in: run with a copy of the package that has the column `note`.

`python -m tests.interfaces.new_column` with the copy first on the path, and PGBEAT_URL for a database that the package
without the column has migrated. See `test_columns.py`.
"""

from __future__ import annotations

import json
import os
from contextlib import closing

import pytest
from celery import Celery
from click.testing import CliRunner

from celery_pgbeat import PgBeat
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.cli import main
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.roles import roles_script
from celery_pgbeat.settings import Settings
from tests.docs import shell_page, sql_page
from tests.harness.databases import migrate_database
from tests.harness.session import Session, reason

URL = os.environ["PGBEAT_URL"]


def in_sql(session: Session) -> None:
    called = "select note from pgbeat.schedule(name => 'sql', task => 't', note => 'a')"
    assert session.value(called) == "a"
    before = session.task("sql")
    assert session.value(called.replace("'a'", "'b'")) == "b"
    after = session.task("sql")
    assert (before["revision"], "b") == (after["revision"], after["note"])
    assert "note has 1001 characters" in reason(session.refusal(called.replace("'a'", "repeat('x', 1001)")))
    assert "note has the control character" in reason(session.refusal(called.replace("'a'", "chr(9)")))
    assert session.value("select count(*) from pg_proc where proname = 'schedule'") == 1

    session.rows(roles_script("pgbeat"))
    allowed = {
        (role, right): session.value(
            "select has_column_privilege(%s, 'pgbeat.periodic_task', 'note', %s)", f"pgbeat_{role}", right
        )
        for role in ("author", "reader", "worker")
        for right in ("select", "insert", "update")
    }
    granted = {("author", "select"), ("author", "insert"), ("author", "update"), ("reader", "select")}
    assert granted == {grant for grant, is_allowed in allowed.items() if is_allowed}


def in_python(beat: PgBeat) -> None:
    assert beat.schedule("python", "t", "@daily", note="a").note == "a"
    assert beat.schedule("python", "t", "@daily", note="b").note == beat.get("python").note == "b"
    assert beat.schedule("python", "t", "@daily").note is None
    with pytest.raises(InvalidPeriodicTask, match="note is 5, not text"):
        beat.schedule("python", "t", "@daily", note=5)


def in_code(beat: PgBeat) -> None:
    for note in ("a", "b"):
        app = Celery("shop", set_as_current=False)
        app.conf.beat_schedule = {"code": {"task": "t", "schedule": 60, "pgbeat": {"note": note}}}
        CodeSchedules(app, beat.database, Settings()).sync()
        assert beat.get("code").note == note
        app.close()


def at_the_shell(session: Session) -> None:
    def run(*words: str, lines: str = "") -> str:
        result = CliRunner().invoke(main, words, input=lines, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    assert "Created" in run("add", "shell", "--task", "t", "--note", "a")
    assert "    note: a -> b" in run("add", "shell", "--task", "t", "--note", "b")
    assert "b" in next(line for line in run("show", "shell").splitlines() if line.startswith("note")).split()
    line = run("export", "--like", "shell")
    assert json.loads(line)["note"] == "b"
    assert "    note: b -> c" in run("import", "-", lines=line.replace('"note": "b"', '"note": "c"'))
    assert session.task("shell")["note"] == "c"


def in_the_docs() -> None:
    with closing(Database(URL)) as database:
        page = sql_page.rendered(database)
    assert "| note | text |  | A note; free text. |" in page
    assert "note text DEFAULT NULL::text" in page
    assert "--note TEXT" in shell_page.rendered()
    assert "A note; free text." in shell_page.rendered()


if __name__ == "__main__":
    migrate_database(URL)
    session, beat = Session(URL), PgBeat(url=URL)
    in_sql(session)
    in_python(beat)
    in_code(beat)
    at_the_shell(session)
    in_the_docs()
