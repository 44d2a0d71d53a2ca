"""The table of columns, against the database that the migrations make, and with one column more."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import celery_pgbeat
from celery_pgbeat.columns import DECLARED, INTERNAL, PUBLIC
from celery_pgbeat.postgres.statements import rendered
from tests.harness.next_version import with_one_more_migration
from tests.harness.session import Session

PACKAGE = Path(celery_pgbeat.__file__).parent
NOTE = '    note: str | None = free_text("A note; free text.")\n'


def test_the_table_of_columns_has_the_columns_of_the_database_with_their_types_and_defaults(session: Session) -> None:
    stored = {
        row["name"]: (row["type"], row["initial"])
        for row in session.rows(
            "select attname as name, format_type(atttypid, atttypmod)::text as type, "
            "pg_get_expr(adbin, adrelid) as initial "
            "from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum "
            "where attrelid = 'pgbeat.periodic_task'::regclass and attnum > 0 and not attisdropped"
        )
    }

    assert {*PUBLIC, *(column.name for column in INTERNAL)} == set(stored)
    types = {"smallint": "int", "bigint": "int", "integer": "int", "timestamp with time zone": "timestamptz"}
    assert {name: column.sql_type for name, column in PUBLIC.items()} == {
        name: types.get(stored[name][0], stored[name][0]) for name in PUBLIC
    }
    initial = {name: session.value(f"select {stored[name][1] or 'null'}::text") for name in DECLARED}
    assert {
        name: str(column.initial).lower() if column.type is bool else column.initial
        for name, column in DECLARED.items()
    } == initial


def test_the_values_that_are_allowed_are_those_of_the_checks(session: Session) -> None:
    checks = {
        row["name"]: set(re.findall(r"'(\w+)'::text", row["text"]))
        for row in session.rows(
            "select conname as name, pg_get_constraintdef(oid) as text from pg_constraint "
            "where conrelid = 'pgbeat.periodic_task'::regclass and conname like '%%\\_known'"
        )
    }

    assert checks == {
        f"periodic_task_{name}_known": set(column.choices) for name, column in PUBLIC.items() if column.choices
    }


def test_every_token_of_a_definition_is_filled_in() -> None:
    texts = [rendered(path.read_text(), "pgbeat") for path in PACKAGE.rglob("*.sql")]
    roles = {"owner", "beat", "worker", "author", "reader", "person", "names"}  # see `roles.py`

    assert set() == {token for text in texts for token in re.findall(r"\{([a-z_. ]+)\}", text)} - roles


def test_a_free_text_column_is_one_line_of_the_table_and_a_migration(tmp_path: Path, migrated_database: str) -> None:
    table = with_one_more_migration(tmp_path) / "columns.py"
    subject = '    subject: str | None = free_text("Its purpose; free text.")\n'
    text = table.read_text(encoding="utf-8")
    assert subject in text
    table.write_text(text.replace(subject, subject + NOTE), encoding="utf-8")
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PGBEAT_", "CELERY_"))}

    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.interfaces.new_column"],
        cwd=tmp_path,
        env={**others, "PYTHONPATH": f"{tmp_path}:{PACKAGE.parent}", "PGBEAT_URL": migrated_database},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
