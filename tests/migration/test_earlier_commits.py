"""A database that any earlier commit has migrated becomes what a new one is.

Each commit's own package writes the script that makes its schema, as far back as the first migration is this one:
before that, nothing was released, and the schema was another one. Where there is no history (a source archive, a
shallow clone), nothing is tried.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from celery_pgbeat.embedded.databases import create_database, drop_database
from celery_pgbeat.postgres.engine import create_engine
from celery_pgbeat.postgres.migrate import migrate
from tests.harness.session import Session

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "celery_pgbeat/postgres/migrations",
    "celery_pgbeat/postgres/definitions",
    "celery_pgbeat/postgres/sql",
    "celery_pgbeat/postgres/column_lists.py",
    "celery_pgbeat/columns.py",
)
FIRST = f"{FOLDERS[0]}/0001_tables.sql"
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
    """Return the commits of this branch, without those of branches that were merged, whose first migration is ours."""
    first = (ROOT / FIRST).read_text()
    known = git("log", "--first-parent", "--format=%h", "--", *FOLDERS).split()
    return [commit for commit in known if git("show", f"{commit}:{FIRST}") == first]


def migrated_by(commit: str, session: Session, folder: Path) -> None:
    """Apply what that commit's package applied to an empty database."""
    archive = subprocess.run(["git", "archive", commit, "celery_pgbeat"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    python, env = [sys.executable, "-c", SCRIPT], {"PYTHONPATH": str(folder)}
    written = subprocess.run(python, cwd=folder, env=env, capture_output=True, text=True, check=True)
    session.rows(written.stdout)
    session.rows("update pgbeat.schema_version set definitions = %s", "that commit's")


def catalogue(session: Session) -> dict[tuple[str, str], Any]:
    return {(row["kind"], row["name"]): row["text"] for row in session.rows(CATALOGUE)}


@pytest.fixture
def another_database(postgres_server: str, unique_name: Callable[[], str]) -> Iterator[str]:
    name = unique_name()
    yield create_database(postgres_server, name)
    drop_database(postgres_server, name)


@pytest.mark.parametrize("commit", commits() or [pytest.param("", marks=pytest.mark.skip("no history here"))])
def test_a_database_of_any_earlier_commit_becomes_what_a_new_one_is(
    database: str, another_database: str, commit: str, tmp_path: Path
) -> None:
    old, new = Session(database), Session(another_database)
    migrated_by(commit, old, tmp_path)
    old.rows("insert into pgbeat.periodic_task (name, task, schedule) values ('a', 'app.probe', '@daily')")

    for url in (database, another_database):
        engine = create_engine(url)
        migrate(engine)
        engine.dispose()

    found, expected = catalogue(old), catalogue(new)
    assert {} == {key: found.get(key) for key in expected if found.get(key) != expected[key]}
    assert set() == set(found) - set(expected)
    assert {"name": "a", "schedule": "@daily"} == old.row("select name, schedule from pgbeat.periodic_task")
