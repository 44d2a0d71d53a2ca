"""The statements of `sql/`, loaded once: the file's name is the verb, its comment the documentation.

Its folders say who runs them: beats, workers, the declarations of code, people (through `PgBeat`), or pages, which also
means what commands show.

A file is one statement. Where planning the statement takes longer than running it, the statement is a function, because
a function keeps its plan. Such a file has three parts:

    -- What it does, in one sentence.
    --
    -- What may race with it, and why it is a function.
    -- function
    create or replace function {schema}.mark(...) ...
    -- call
    select ... from {schema}.mark(%(beat)s, ...)

`migrate` installs the part below `-- function` with the other definitions; callers run the part below `-- call`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.column_lists import with_columns
from celery_pgbeat.postgres.fragments import with_fragments
from celery_pgbeat.postgres.function_comments import function_comments
from celery_pgbeat.postgres.job_column_lists import with_job_columns
from celery_pgbeat.postgres.known_words import with_known_words

FOLDER = Path(__file__).parent
PARAMETER = re.compile(r"%\((\w+)\)s")
SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
FUNCTION, CALL = "\n-- function\n", "\n-- call\n"


def checked_schema(schema: str) -> str:
    """Return the name if SQL may contain it, else raise InvalidSetting."""
    if not SCHEMA_NAME.fullmatch(schema):
        raise InvalidSetting(
            f"pgbeat_schema is {schema!r}: use lower-case letters, digits and underscores, at most 63, no digit first"
        )
    return schema


def filled_in(text: str) -> str:
    """Return the text with its tokens filled in: those of the lists of columns, `fragments.py` and `known_words.py`."""
    return with_known_words(with_fragments(with_job_columns(with_columns(text))))


def rendered(text: str, schema: str) -> str:
    """Put the schema into a statement: {schema} as a quoted identifier, {channel} as a string literal.

    The lists of columns and the common parts are filled in too.
    """
    checked_schema(schema)
    return filled_in(text).replace("{schema}", f'"{schema}"').replace("{channel}", f"'{schema}'")


@cache
def files() -> Mapping[str, Path]:
    """Return the file of each statement, by its name, in the order of the names."""
    return {path.stem: path for path in sorted((FOLDER / "sql").glob("*/*.sql"), key=lambda path: path.stem)}


@lru_cache(maxsize=256)
def statement(name: str, schema: str) -> str:
    """Return the statement of this name for this schema, without its comments; of a function, the call."""
    text = files()[name].read_text(encoding="utf-8")
    lines = (line for line in text.split(CALL)[-1].splitlines() if not line.lstrip().startswith("--"))
    return rendered("\n".join(lines), schema)


def functions() -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the statements that are functions: what `migrate` installs of them."""
    for name, path in files().items():
        head, _, function = path.read_text(encoding="utf-8").partition(CALL)[0].partition(FUNCTION)
        if function:
            yield name, f"{function}\n{function_comments(function, name, head)}"


def parameters(name: str) -> frozenset[str]:
    """Return the names of the parameters of a statement; a test compares them with the callers' arguments."""
    return frozenset(PARAMETER.findall(statement(name, "pgbeat")))
