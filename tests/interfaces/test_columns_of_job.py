"""The table of the columns of a job, against the database that the migrations make, and with one column more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import celery_pgbeat
from celery_pgbeat.columns_of_job import ACTIVE, FINISHED, PUBLIC
from celery_pgbeat.web.pages.jobs import PLACED
from tests.harness.next_version import with_one_more_migration
from tests.harness.session import Session

PACKAGE = Path(celery_pgbeat.__file__).parent
END = '    group_name: str | None = column("The group of its periodic task when it was decided.", made="copied")\n'
SUBJECT = '    subject: str | None = column("The subject of its periodic task.", made="copied", since=2)\n'


def test_the_tables_and_the_view_have_the_columns_of_the_table_in_its_order(session: Session) -> None:
    types = {"integer": "int", "timestamp with time zone": "timestamptz"}
    for relation, columns in (("active_job", ACTIVE), ("finished_job", FINISHED), ("job", PUBLIC)):
        stored = session.rows(
            "select attname as name, format_type(coalesce(nullif(typbasetype, 0), atttypid), atttypmod)::text as type "
            "from pg_attribute join pg_type on pg_type.oid = atttypid "
            f"where attrelid = 'pgbeat.{relation}'::regclass and attnum > 0 and not attisdropped order by attnum"
        )

        assert [(row["name"], types.get(row["type"], row["type"])) for row in stored] == [
            (name, column.sql_type) for name, column in columns.items()
        ]


def test_what_the_page_of_a_job_places_itself_are_columns() -> None:
    assert set() == set(PLACED) - set(PUBLIC)


def test_a_column_of_a_job_is_one_line_of_the_table_and_a_migration(tmp_path: Path, migrated_database: str) -> None:
    table = with_one_more_migration(tmp_path, "-- The subject") / "columns_of_job.py"
    text = table.read_text(encoding="utf-8")
    assert END in text
    table.write_text(text.replace(END, END + SUBJECT), encoding="utf-8")
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}

    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.interfaces.new_column_of_job"],
        cwd=tmp_path,
        env={**others, "PYTHONPATH": f"{tmp_path}:{PACKAGE.parent}", "PGBEAT_URL": migrated_database},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
