"""A database that any earlier commit has migrated becomes what a new one is.

Each commit's own package writes the script that makes its schema, as far back as the first migration is this one:
before that, nothing was released, and the schema was another one. Tried are the commits that wrote a migration and the
latest others: what is not a table is replaced as a whole, so an old definition does no harm unless its name or its
columns changed since, and that was tried when it was among the latest. `PGBEAT_TEST_COMMITS=all` tries each. Where
there is no history (a source archive, a shallow clone), nothing is tried.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from celery_pgbeat.postgres.engine import create_engine
from celery_pgbeat.postgres.migrate import migrate
from tests.harness.session import Session

ROOT = Path(__file__).parents[2]
MIGRATIONS = "celery_pgbeat/postgres/migrations"
FOLDERS = (
    MIGRATIONS,
    "celery_pgbeat/postgres/definitions",
    "celery_pgbeat/postgres/sql",
    "celery_pgbeat/postgres/column_lists.py",
    "celery_pgbeat/columns.py",
)
FIRST = f"{MIGRATIONS}/0001_tables.sql"
LATEST = 5  # of the commits that wrote no migration
DAY = re.compile(r"finished_job_\d{8}")  # a day of the history; which there are depends on when a database was made
SCRIPT = "from celery_pgbeat.postgres.script import parts, transaction; print(transaction(parts('pgbeat')))"

CATALOGUE = """
    select 'function' as kind, oid::regprocedure::text as name, pg_get_functiondef(oid) as text
    from pg_proc where pronamespace = 'pgbeat'::regnamespace
    union all
    select 'column', attrelid::regclass || '.' || attname,
        concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid))
    from pg_attribute
    join pg_class on pg_class.oid = attrelid and relkind in ('r', 'p', 'v')
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relnamespace = 'pgbeat'::regnamespace and attnum > 0 and not attisdropped
    union all
    select 'constraint', conrelid::regclass || '.' || conname, replace(pg_get_constraintdef(oid), ' NOT VALID', '')
    from pg_constraint where connamespace = 'pgbeat'::regnamespace
    union all
    select 'index', indexname, indexdef from pg_indexes where schemaname = 'pgbeat'
    union all
    select 'trigger', tgname, pg_get_triggerdef(pg_trigger.oid)
    from pg_trigger join pg_class on pg_class.oid = tgrelid
    where relnamespace = 'pgbeat'::regnamespace and not tgisinternal
    union all
    select 'view', viewname, definition from pg_views where schemaname = 'pgbeat'
"""


def git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout if found.returncode == 0 else ""


def commits() -> list[str]:
    """Return the commits to try, of this branch and not of those that were merged, whose first migration is ours."""
    first = (ROOT / FIRST).read_text()
    known = [commit for commit in changed(*FOLDERS) if git("show", f"{commit}:{FIRST}") == first]
    if os.environ.get("PGBEAT_TEST_COMMITS") == "all":
        return known
    migrations = {*changed(MIGRATIONS)}
    return [commit for number, commit in enumerate(known) if number < LATEST or commit in migrations]


def changed(*paths: str) -> list[str]:
    """Return the commits that changed a path, the latest first."""
    return git("log", "--first-parent", "--format=%h", "--", *paths).split()


def migrated_by(commit: str, session: Session, folder: Path) -> None:
    """Apply what that commit's package applied to an empty database."""
    archive = subprocess.run(["git", "archive", commit, "celery_pgbeat"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    python, env = [sys.executable, "-c", SCRIPT], {"PYTHONPATH": str(folder)}
    written = subprocess.run(python, cwd=folder, env=env, capture_output=True, text=True, check=True)
    session.rows(written.stdout)
    session.rows("update pgbeat.schema_version set definitions = %s", "that commit's")


def catalogue(session: Session) -> dict[tuple[str, str], Any]:
    return {(row["kind"], row["name"]): row["text"] for row in session.rows(CATALOGUE) if not DAY.search(row["name"])}


@pytest.fixture(scope="module")
def expected(shared_database: str) -> dict[tuple[str, str], Any]:
    """What a new database has."""
    session = Session(shared_database)
    with closing(session.connection):
        return catalogue(session)


@pytest.mark.parametrize("commit", commits() or [pytest.param("", marks=pytest.mark.skip("no history here"))])
def test_a_database_of_any_earlier_commit_becomes_what_a_new_one_is(
    database: str, expected: dict[tuple[str, str], Any], commit: str, tmp_path: Path
) -> None:
    old = Session(database)
    migrated_by(commit, old, tmp_path)
    old.rows("insert into pgbeat.periodic_task (name, task, schedule) values ('a', 'app.probe', '@daily')")

    engine = create_engine(database)
    migrate(engine)
    engine.dispose()

    found = catalogue(old)
    assert {} == {key: found.get(key) for key in expected if found.get(key) != expected[key]}
    assert set() == set(found) - set(expected)
    assert {"name": "a", "schedule": "@daily"} == old.row("select name, schedule from pgbeat.periodic_task")
