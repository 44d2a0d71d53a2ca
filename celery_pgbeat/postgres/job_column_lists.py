"""The column lists of jobs, made from the table of their columns (`celery_pgbeat/columns_of_job.py`).

A text has them as tokens, as those of a periodic task (`column_lists.py`):

    {active_job of made}    made.id, made.periodic_task, ...: the columns of the table, in their order
    {finished_job of ended} likewise
    {copied}                task, queue, ...: what a job gets from its periodic task, by the same names
    {copied of definition}  definition.task, ...; likewise
    {copied_to_history}     those of them that the history has, as it records a skipped occurrence
    {empty}                 null::timestamptz as sent_at, ...: what a new job does not have yet
    {kept of job}           job.id, ...: what the history keeps of an active job, by the same names
    {restart_data of job}   what a lost job needs to start after all, as a JSON object
    {shown of active_job}   the columns of the view `job`, and {shown of finished_job}
    {active_job_by_reader}  the columns in the grants of the role reader, and {finished_job_by_reader}
    {job_comments}          a `comment on column` for each column of the view and of the tables
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from textwrap import fill

from celery_pgbeat.columns_of_job import ACTIVE, FINISHED, PUBLIC, JobColumn

WIDTH = 110  # characters of a line
TABLES: Mapping[str, Mapping[str, JobColumn]] = {"active_job": ACTIVE, "finished_job": FINISHED}
COPIED = [name for name, column in ACTIVE.items() if column.made == "copied"]
KEPT = [name for name, column in FINISHED.items() if column.ended == "kept"]
# What a job needs to start after all, beside what it got from its periodic task.
RESTARTED = ("exclusive", "message", "tracking", "pause_after_failures", "pickup_deadline", "backfill")
LISTS: Mapping[str, Iterable[str]] = {
    **TABLES,
    "copied": COPIED,
    "copied_to_history": [name for name in COPIED if name in FINISHED],
    "kept": KEPT,
}
LIST = re.compile(rf"\{{({'|'.join(LISTS)}) of ([\w()]+)\}}")


def with_job_columns(text: str) -> str:
    """Return the text with its tokens replaced.

    Example:
        >>> with_job_columns("select {active_job of made}")[:36]
        'select made.id, made.periodic_task, '
    """
    text = LIST.sub(lambda found: _joined(f"{found[2]}.{name}" for name in LISTS[found[1]]), text)
    for token, columns in _tokens().items():
        text = text.replace(token, columns)
    return text


@cache
def _tokens() -> dict[str, str]:
    restarted = (f"'{name}', job.{name}" for name in (*RESTARTED, *COPIED))
    return {
        **{f"{{{name}}}": _joined(LISTS[name]) for name in ("copied", "copied_to_history")},
        "{empty}": _joined(f"{_empty(one)} as {one.name}" for one in ACTIVE.values() if one.made == "empty"),
        "{restart_data of job}": f"jsonb_build_object({_joined(restarted)})",
        "{shown of active_job}": _joined(map(_of_active, PUBLIC.values())),
        "{shown of finished_job}": _joined(map(_of_finished, PUBLIC.values())),
        **{
            f"{{{table}_by_reader}}": _joined(name for name, one in columns.items() if not one.hidden)
            for table, columns in TABLES.items()
        },
        "{job_comments}": "\n".join(
            [
                *(_comment("job", one.name, one.says) for one in PUBLIC.values()),
                *(
                    _comment(table, name, f"Internal: {'as in the view job.' if one.public else one.says}")
                    for table, columns in TABLES.items()
                    for name, one in columns.items()
                ),
            ]
        ),
    }


def _of_active(column: JobColumn) -> str:
    return _shown(column, column.active, column.made is not None)


def _of_finished(column: JobColumn) -> str:
    return _shown(column, column.final, column.ended is not None)


def _shown(column: JobColumn, expression: str, is_there: bool) -> str:
    value = expression or (column.name if is_there else "null")
    return f"({value})::{column.sql_type} as {column.name}"


def _empty(column: JobColumn) -> str:
    return {"int": "0", "boolean": "false"}.get(column.sql_type, f"null::{column.sql_type}")


def _joined(items: Iterable[str]) -> str:
    return fill(", ".join(items), WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _comment(relation: str, name: str, says: str) -> str:
    text = says.replace("'", "''")
    return f"comment on column {{schema}}.{relation}.{name} is\n    '{text}';"
