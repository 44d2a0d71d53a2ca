"""The statements of `sql/`, loaded once: the file's name is the verb, its comment the documentation."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.column_lists import with_columns

PARAMETER = re.compile(r"%\((\w+)\)s")
SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def checked_schema(schema: str) -> str:
    """Return the name if it may stand in SQL, else raise InvalidSetting."""
    if not SCHEMA_NAME.fullmatch(schema):
        raise InvalidSetting(
            f"pgbeat_schema is {schema!r}: use lower-case letters, digits and underscores, at most 63, no digit first"
        )
    return schema


def rendered(text: str, schema: str) -> str:
    """Put the schema into a statement: {schema} as a quoted identifier, {channel} as a string literal.

    The lists of columns are filled in too, see `column_lists.py`.
    """
    checked_schema(schema)
    return with_columns(text).replace("{schema}", f'"{schema}"').replace("{channel}", f"'{schema}'")


@lru_cache(maxsize=256)
def statement(name: str, schema: str) -> str:
    """Return the statement `sql/<name>.sql` for this schema, without its comments."""
    text = (resources.files("celery_pgbeat.postgres") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return rendered("\n".join(lines), schema)


def parameters(name: str) -> frozenset[str]:
    """Return the names of the parameters of a statement; a test compares them with the callers' arguments."""
    return frozenset(PARAMETER.findall(statement(name, "pgbeat")))
