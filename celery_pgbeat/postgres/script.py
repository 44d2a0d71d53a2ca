"""What `migrate` runs, as a script for administrators who run it themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from celery_pgbeat.postgres.migrate import LOCK, MIN_COMPATIBLE, SCHEMA, checksum, definitions, latest, migrations
from celery_pgbeat.postgres.statements import rendered


class Part(NamedTuple):
    """A piece of the script, and what it is."""

    name: str
    sql: str


def parts(schema: str, version: int = 0) -> Iterator[Part]:
    """Yield what brings a schema at this version to the version of this package, in order.

    Raises:
        InvalidSetting: the schema's name cannot be used in SQL.
    """
    known = latest()
    yield Part("locks", rendered(LOCK, schema).strip()) if version else Part("schema", rendered(SCHEMA, schema).strip())
    for number, text in migrations():
        if number > version:
            yield Part(f"migration {number}", rendered(text, schema).strip())
    for name, text in definitions():
        yield Part(f"definitions: {name}", rendered(text, schema).strip())
    yield Part(
        "version",
        rendered(
            "delete from {schema}.schema_version;\n"  # noqa: S608  numbers of our own
            "insert into {schema}.schema_version (version, min_compatible, definitions)\n"
            f"values ({known}, {MIN_COMPATIBLE}, '{checksum()}');",
            schema,
        ),
    )


def transaction(script: Iterable[Part]) -> str:
    """Return the script as one transaction: all of it or nothing."""
    return "\n\n".join(["begin;", *(f"-- {part.name}\n\n{part.sql}" for part in script), "commit;"]) + "\n"
