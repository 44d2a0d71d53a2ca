"""A database that any earlier commit has migrated becomes what a new one is.

The texts come from the repository's history, each set of migrations and definitions once, as far back as the first
migration is this one: before that, nothing was released, and the schema was of another making. Where there is no
history (a source archive, a shallow clone), only what is there is tried.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from celery_pgbeat.embedded.databases import create_database, drop_database
from celery_pgbeat.postgres.engine import create_engine
from celery_pgbeat.postgres.migrate import migrate
from celery_pgbeat.postgres.statements import function_in, rendered
from tests.store.session import Session

ROOT = Path(__file__).parents[2]
MIGRATIONS, DEFINITIONS, STATEMENTS = FOLDERS = (
    "celery_pgbeat/postgres/migrations",
    "celery_pgbeat/postgres/definitions",
    "celery_pgbeat/postgres/sql",
)

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
    """Return the newest commit of each set of migrations and definitions that begins as ours does."""
    first = (ROOT / MIGRATIONS / "0001_tables.sql").read_text()
    found: dict[str, str] = {}
    for commit in git("log", "--format=%h", "--", *FOLDERS).split():
        if git("show", f"{commit}:{MIGRATIONS}/0001_tables.sql") == first:
            installs = (MIGRATIONS, DEFINITIONS, *([STATEMENTS] if order(commit) else []))
            found.setdefault(git("rev-parse", *(f"{commit}:{folder}" for folder in installs)), commit)
    return list(found.values())


def order(commit: str) -> list[str]:
    """Return the order of that commit's definitions; empty where their names begin with numbers instead."""
    lines = git("show", f"{commit}:{DEFINITIONS}/order.txt").splitlines()
    return [line.split()[0] for line in lines if not line.startswith("#")]


def texts(commit: str, folder: str) -> Iterator[tuple[str, str]]:
    for path in sorted(git("ls-tree", "--name-only", commit, f"{folder}/").split()):
        yield Path(path).name, git("show", f"{commit}:{path}")


def definitions(commit: str) -> Iterator[str]:
    found = dict(texts(commit, DEFINITIONS))
    for name in order(commit) or sorted(found):
        if name == "statements":
            yield from filter(None, (function_in(text) for _, text in texts(commit, STATEMENTS)))
        else:
            yield found[name]


def migrated_by(commit: str, session: Session) -> None:
    """Apply what that commit's package applied to an empty database."""
    migrations = list(texts(commit, MIGRATIONS))
    session.rows("create schema pgbeat")
    for text in (*(text for _, text in migrations), *definitions(commit)):
        session.rows(rendered(text, "pgbeat"))
    version = int(migrations[-1][0][:4])
    session.rows("insert into pgbeat.schema_version values (%s, 1, %s)", version, "that commit's")


def catalogue(session: Session) -> dict[tuple[str, str], Any]:
    return {(row["kind"], row["name"]): row["text"] for row in session.rows(CATALOGUE)}


@pytest.fixture
def another_database(postgres_server: str, unique_name: Callable[[], str]) -> Iterator[str]:
    name = unique_name()
    yield create_database(postgres_server, name)
    drop_database(postgres_server, name)


@pytest.mark.parametrize("commit", commits() or [pytest.param("", marks=pytest.mark.skip("no history here"))])
def test_a_database_of_any_earlier_commit_becomes_what_a_new_one_is(
    database: str, another_database: str, commit: str
) -> None:
    old, new = Session(database), Session(another_database)
    migrated_by(commit, old)
    old.rows("insert into pgbeat.periodic_task (name, task, schedule) values ('a', 'app.probe', '@daily')")

    for url in (database, another_database):
        engine = create_engine(url)
        migrate(engine)
        engine.dispose()

    found, expected = catalogue(old), catalogue(new)
    assert {} == {key: found.get(key) for key in expected if found.get(key) != expected[key]}
    assert set() == set(found) - set(expected)
    assert {"name": "a", "schedule": "@daily"} == old.row("select name, schedule from pgbeat.periodic_task")
