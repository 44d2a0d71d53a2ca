"""Empties the schedule in a database of tests, whose rows would be there in the next test."""

from __future__ import annotations

from django.apps import apps
from django.db import connections

from celery_pgbeat.django.fixtures import LABEL
from celery_pgbeat.django.place import alias_url, database_alias, schema

KEPT = ("schema_version", "last_author")  # a new schema has rows there
TABLES = """
select quote_ident(relname) from pg_class
where relnamespace = to_regnamespace(quote_ident(%s)) and relkind in ('r', 'p') and not relispartition
    and relname <> all (%s)
"""


def is_for_tests(alias: str) -> bool:
    """Tell whether this is the database of the schedule, and Django's test runner has made it."""
    configured = apps.get_app_config(LABEL).url
    return alias == database_alias() and configured is not None and configured != alias_url()


def empty(alias: str) -> None:
    """Empty all tables of the schema; there may be none."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute(TABLES, [schema(), list(KEPT)])
        tables = [f"{connection.ops.quote_name(schema())}.{name}" for (name,) in cursor.fetchall()]
        if tables:
            cursor.execute(f"truncate {', '.join(tables)}")
