"""`job show`: one job in full."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from celery_pgbeat.cli.command_line.failure import ApiCommand
from celery_pgbeat.cli.command_line.target import Target
from celery_pgbeat.cli.options.ids import IdBeginning, row_of_job
from celery_pgbeat.cli.output.job_columns import JobAt, job_as_dict
from celery_pgbeat.cli.output.times import duration, from_now, instant, with_utc
from celery_pgbeat.cli.output.values import as_json, print_json, print_pairs, text
from celery_pgbeat.columns_of_job import PUBLIC
from celery_pgbeat.texts.redaction import MASK

if TYPE_CHECKING:
    from celery_pgbeat.api import Job
    from celery_pgbeat.postgres.admin_queries import AdminQueries

# What is shown first, in this order; then all other columns.
FIRST = (
    *("state", "error", "periodic_task", "id", "scheduled_for", "last_scheduled_for", "due_at", "created_at"),
    *("sent_at", "started_at", "finished_at", "late", "duration", "occurrences", "blocked_by", "origin", "task"),
    *("group_name", "stop_request", "owner", "due_by", "note", "queue", "attempt", "sends", "worker", "beat"),
)
LABELS = {"id": "job", "group_name": "group", "stop_request": "asked to"}


@click.command("show", cls=ApiCommand)
@click.argument("id", type=IdBeginning(), metavar="ID")
@with_utc
@as_json
def job(id: str, as_json: bool) -> None:
    """Show one job in full. Of its id the first characters will do, if no other job's id begins with them.

    Exit codes: 0 done; 1 there is no such job, or there are several; 2 ID is no id.
    """
    from celery_pgbeat.api.rows import read_row
    from celery_pgbeat.columns_of_job import Job

    operators = Target.current().operators()
    found = JobAt(read_row(Job, row_of_job(id)), operators.clock())
    arguments = _arguments(operators, found.job)
    if as_json:
        print_json({**job_as_dict(found), "arguments": arguments})
    else:
        pairs = [*as_pairs(found), ("arguments", _in_words(arguments))]
        print_pairs([(name, value) for name, value in pairs if value not in ("-", "")])


def _in_words(arguments: dict[str, Any] | None) -> str:
    if arguments is None or arguments["sensitive"]:
        return "-" if arguments is None else MASK
    return text(json.dumps({name: arguments[name] for name in ("args", "kwargs")}, ensure_ascii=False))


def _arguments(operators: AdminQueries, job: Job) -> dict[str, Any] | None:
    """Return what a job calls its task with; None if that is not kept, or this user may not read it."""
    from sqlalchemy.exc import DBAPIError

    from celery_pgbeat.postgres.database import NO_RIGHT, sqlstate

    try:
        kept = operators.arguments_of_job(str(job.id))
    except DBAPIError as error:
        if sqlstate(error.orig) != NO_RIGHT:
            raise
        return None
    if kept is None:
        return None
    args, kwargs = (json.loads(kept[name] or "null") for name in ("args", "kwargs"))
    return {"args": args, "kwargs": kwargs, "sensitive": kept["hidden"]}


def as_pairs(found: JobAt) -> list[tuple[str, str]]:
    """Return what people want to know of a job, the most important first."""
    one, now = found.job, found.now
    special = {
        "state": found.state,  # with the reason
        "late": duration(found.lateness),
        "duration": duration(found.duration),
        "occurrences": str(one.occurrences) if one.occurrences > 1 else "-",
        "attempt": str(one.attempt + 1) if one.attempt else "-",
        "busy_until": "-" if one.finished_at else _when(one.busy_until, now),
    }
    names = [*FIRST, *(name for name in PUBLIC if name not in FIRST and name != "reason")]
    return [(_label(name), special.get(name) or _value(name, one, now)) for name in names]


def _label(name: str) -> str:
    return LABELS.get(name, name.removesuffix("_at").replace("_", " "))


def _value(name: str, job: Job, now: Any) -> str:
    value = getattr(job, name)
    return _when(value, now) if PUBLIC[name].type is datetime else text(value)


def _when(value: Any, now: Any) -> str:
    return "-" if value is None else f"{instant(value)} ({from_now(value, now)})"
