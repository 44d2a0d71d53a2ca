"""The part of docs/sql.md about functions, views and tables, made from the catalogue of a database.

`python -m tests.docs.sql_page` writes it into the page.
"""

from __future__ import annotations

import re
from contextlib import closing

from celery_pgbeat.embedded import Postgres
from celery_pgbeat.postgres.database import Database
from tests.docs.pages import ROOT, noted
from tests.harness.databases import migrate_database

PAGE = ROOT / "docs" / "sql.md"
NOTE = "Made from the code by `python -m tests.docs.sql_page`. `\\df+ pgbeat.*` in psql says the same."
PART = re.compile(r"(?<=<!-- made from the catalogue -->\n).*", re.DOTALL)

INTERNAL = {"internal": "Internal: %"}
FUNCTIONS = """
    select proname as name, pg_get_function_arguments(oid) as arguments, pg_get_function_result(oid) as result,
        obj_description(oid, 'pg_proc') as comment
    from pg_proc
    where pronamespace = 'pgbeat'::regnamespace and obj_description(oid, 'pg_proc') not like %(internal)s
    order by proname
"""
RELATIONS = """
    select relname as name, case relkind when 'v' then 'view' else 'table' end as kind,
        obj_description(oid, 'pg_class') as comment
    from pg_class
    where relnamespace = 'pgbeat'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition
        and obj_description(oid, 'pg_class') not like %(internal)s
    order by relname <> 'periodic_task', relname <> 'job', relname
"""
COLUMNS = """
    select attname as name, format_type(coalesce(nullif(typbasetype, 0), atttypid), atttypmod) as type,
        attnotnull as given, pg_get_expr(adbin, adrelid) as initial, col_description(attrelid, attnum) as comment
    from pg_attribute join pg_type on pg_type.oid = atttypid
        left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = ('pgbeat.' || %(relation)s)::regclass and attnum > 0 and not attisdropped
    order by attnum
"""


def rendered(database: Database) -> str:
    """Return the part as it has to be."""
    parts = ["\n## Functions\n"]
    for function in database.execute(FUNCTIONS, INTERNAL):
        call = f"{function.name}({_arguments(function.arguments)}) → {function.result}"
        parts.append(f"\n### {function.name}\n\n```\n{call}\n```\n\n{_prose(function.comment)}\n")
    for relation in database.execute(RELATIONS, INTERNAL):
        parts.append(f"\n## The {relation.kind} {relation.name}\n\n{_prose(relation.comment)}\n\n")
        parts.append("| column | type | default | |\n|---|---|---|---|\n")
        for column in database.execute(COLUMNS, {"relation": relation.name}):
            initial = f"`{column.initial.replace('|', chr(92) + '|')}`" if column.initial else ""
            parts.append(f"| {column.name} | {column.type} | {initial} | {_prose(column.comment)} |\n")
    return "".join(parts)


def _arguments(text: str) -> str:
    arguments = text.split(", ")
    return text if len(arguments) < 4 else "\n    " + ",\n    ".join(arguments) + "\n"


def _prose(text: str) -> str:
    return re.sub(r"([|*<])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    with Postgres(durable=False) as server, closing(Database(server.create_database("page"))) as database:
        migrate_database(database.url)
        text = rendered(database)
    PAGE.write_text(noted(PART.sub(lambda _: text, PAGE.read_text(encoding="utf-8")), NOTE), encoding="utf-8")
