"""Whoever looks at the schema with a database tool is told what everything means, and what is internal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.harness.session import Session

# What people call. Each has a comment in definitions/public/comments.sql; all other functions are internal.
PUBLIC_FUNCTIONS = {
    "backfill",
    "cancel_backfill",
    "cancel_job",
    "define_group",
    "explain",
    "fail_job",
    "finish",
    "finish_group",
    "known_options",
    "limit_group",
    "make_days",
    "my_work",
    "now",
    "pause",
    "pause_group",
    "pick_up",
    "prune",
    "release",
    "replan",
    "reserved_headers",
    "resend_job",
    "resume",
    "resume_group",
    "retry_job",
    "revert",
    "schedule",
    "trigger",
    "trigger_many",
    "unschedule",
    "validate_schedule",
    "validate_timezone",
    "validate_windows",
}
INTERNAL_TABLES = {
    *("active_job", "finished_job", "open_work", "lost_message", "declaration", "declaration_in_force"),
    *("group_failure", "group_to_check", "dependency", "dependency_to_check", "last_author", "change_id_seq"),
}
COMMENTS = """
    select 'schema' as kind, nspname::text as name, null as part_of, obj_description(oid, 'pg_namespace') as comment
    from pg_namespace where nspname = 'pgbeat'
    union all
    select 'function', proname, null, obj_description(oid, 'pg_proc')
    from pg_proc where pronamespace = 'pgbeat'::regnamespace
    union all
    select case when relkind = 'v' then 'view' else 'table' end, relname,
        (select inhparent::regclass::text from pg_inherits where inhrelid = pg_class.oid),
        obj_description(oid, 'pg_class')
    from pg_class where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S')
    union all
    select 'column', attname, relname, col_description(attrelid, attnum)
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p', 'v', 'm') and not relispartition
        and attnum > 0 and not attisdropped
"""


@pytest.fixture(scope="module")
def comments(shared_database: str) -> list[dict[str, Any]]:
    return Session(shared_database).rows(COMMENTS)


def test_nothing_in_the_schema_is_without_a_comment(comments: list[dict[str, Any]]) -> None:
    assert [] == [row for row in comments if not row["comment"]]
    assert {"schema", "function", "view", "table", "column"} == {row["kind"] for row in comments}


def test_what_is_not_public_begins_with_internal_and_nothing_else_does(comments: list[dict[str, Any]]) -> None:
    public = {(row["kind"], row["name"]) for row in comments if not (row["comment"] or "").startswith("Internal: ")}

    assert PUBLIC_FUNCTIONS == {name for kind, name in public if kind == "function"}
    assert INTERNAL_TABLES == {
        row["name"] for row in comments if row["kind"] in ("table", "view") and not row["part_of"]
    } - {name for kind, name in public if kind in ("table", "view")}


def test_all_of_an_internal_table_is_internal(comments: list[dict[str, Any]]) -> None:
    parts = [row for row in comments if (row["part_of"] or "").removeprefix("pgbeat.") in INTERNAL_TABLES]

    assert {"column", "table"} == {row["kind"] for row in parts}
    assert [] == [row for row in parts if not row["comment"].startswith("Internal: ")]


def test_what_an_internal_comment_names_exists(comments: list[dict[str, Any]]) -> None:
    functions = {row["name"] for row in comments if row["kind"] == "function"}
    internal = [row["comment"] for row in comments if (row["comment"] or "").startswith("Internal: ")]
    named = {name for comment in internal for name in re.findall(r"(\w+)\(\)", comment)}

    assert named
    assert set() == named - functions


def test_the_query_of_the_page_lists_the_public_functions_and_the_page_describes_them(shared_database: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(select oid::regproc .*?)```", page, re.DOTALL)
    listed = [row["function"] for row in Session(shared_database).rows(query)]

    assert sorted(f"pgbeat.{name}" for name in PUBLIC_FUNCTIONS) == sorted({str(name) for name in listed})
    assert sorted(set(re.findall(r"^### (\w+)$", page, re.MULTILINE))) == sorted(PUBLIC_FUNCTIONS)
