"""The statements of `sql/`, loaded once: the file's name is the verb, its comment the documentation.

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
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.column_lists import with_columns

PARAMETER = re.compile(r"%\((\w+)\)s")
SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
# Which periodic tasks run at all, as the partial indexes have it: `{is_on}`, or `{is_on task}` for the alias `task`.
# Not a function: that would need the right to read the whole row, which not all roles have.
IS_ON = re.compile(r"\{is_on(?: (\w+))?\}")
# Which jobs past their busy_until nothing can repair, neither another message nor another run: `{is_beyond_repair}`.
# `judge` gives them up. `submit` does so too, for the job that blocks the occurrence it submits.
IS_BEYOND_REPAIR = """(state = 'sent' and (resends >= 3 or not %(resending)s or tracking = 'result')
                or state in ('running', 'retrying') and (on_lost = 'give_up' or stop_request is not null))"""
FUNCTION, CALL = "\n-- function\n", "\n-- call\n"


def checked_schema(schema: str) -> str:
    """Return the name if SQL may contain it, else raise InvalidSetting."""
    if not SCHEMA_NAME.fullmatch(schema):
        raise InvalidSetting(
            f"pgbeat_schema is {schema!r}: use lower-case letters, digits and underscores, at most 63, no digit first"
        )
    return schema


def rendered(text: str, schema: str) -> str:
    """Put the schema into a statement: {schema} as a quoted identifier, {channel} as a string literal.

    `{is_on}` is the condition that a periodic task runs at all, `{is_beyond_repair}` that a job past its deadline must
    be given up. The lists of columns are filled in too, see `column_lists.py`.
    """
    checked_schema(schema)
    text = IS_ON.sub(lambda found: _is_on(f"{found[1]}." if found[1] else ""), with_columns(text))
    text = text.replace("{is_beyond_repair}", IS_BEYOND_REPAIR)
    return text.replace("{schema}", f'"{schema}"').replace("{channel}", f"'{schema}'")


def _is_on(of: str) -> str:
    return f"{of}enabled and not {of}group_paused and {of}problem is null"


@lru_cache(maxsize=256)
def statement(name: str, schema: str) -> str:
    """Return the statement `sql/<name>.sql` for this schema, without its comments; of a function, the call."""
    text = (resources.files("celery_pgbeat.postgres") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    lines = (line for line in text.split(CALL)[-1].splitlines() if not line.lstrip().startswith("--"))
    return rendered("\n".join(lines), schema)


def functions() -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the statements that are functions: what `migrate` installs of them."""
    folder = resources.files("celery_pgbeat.postgres") / "sql"
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        function = function_in(path.read_text(encoding="utf-8"))
        if function:
            yield path.name.removesuffix(".sql"), function


def function_in(text: str) -> str:
    """Return what a statement's file installs, empty where the statement is no function."""
    return text.split(CALL, maxsplit=1)[0].partition(FUNCTION)[2]


def parameters(name: str) -> frozenset[str]:
    """Return the names of the parameters of a statement; a test compares them with the callers' arguments."""
    return frozenset(PARAMETER.findall(statement(name, "pgbeat")))
