"""pg_cron: the table `cron.job`, with commands in SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import sqlalchemy

from celery_pgbeat.declare.timing import Timing, every
from celery_pgbeat.moving.answers import Answer, Taken, answered
from celery_pgbeat.moving.kind import Kind, Request
from celery_pgbeat.moving.kinds.commands import named
from celery_pgbeat.moving.readers.tables import tables_at

SECONDS = re.compile(r"\s*(\d+)\s+seconds?\s*", re.IGNORECASE)
ONE_AT_A_TIME = "A run that is due while the last one is not finished waits (overlap buffer_all), as in pg_cron."
COMMAND = "The task gets the command in SQL, and decides where to run it; subject says where it ran there."
DEFAULT_ZONE = "GMT"  # of cron.timezone


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the jobs."""
    with tables_at(request.source, request.database.url, request.read) as tables:
        zone = tables.setting("cron.timezone") or DEFAULT_ZONE
        jobs = tables.rows("job", "cron", on_path=False)
    for row in jobs:
        yield named(request, answered(_name(row), partial(answer_of, row, zone)))


def answer_of(row: Mapping[str, Any], zone: str) -> Answer:
    """Return what becomes of a job; without a task yet.

    Args:
        row: of `cron.job`.
        zone: the setting `cron.timezone`.
    """
    seconds = SECONDS.fullmatch(row["schedule"])
    timing = every(seconds=int(seconds.group(1))) if seconds else Timing(_cron(row["schedule"]), zone)
    where = f"in the database {row['database']}, as {row['username']}"
    columns = {"args": [row["command"]], "overlap": "buffer_all", "subject": where}
    return Taken(_name(row), None, timing, columns, paused=not row["active"], key=row["jobid"])


def _name(row: Mapping[str, Any]) -> str:
    return str(row.get("jobname") or f"pg_cron job {row['jobid']}")


def _cron(text: str) -> str:
    """Return the text of a schedule; `$` is the last day of a month."""
    fields = text.split()
    if len(fields) == 5:
        fields[2] = fields[2].replace("$", "L")
    return f"cron: {' '.join(fields)}"


def off(connection: Any, keys: Collection[Any]) -> None:
    """Switch jobs off, by pg_cron's own function: others may not write its table."""
    for key in keys:
        alter = sqlalchemy.text("select cron.alter_job(job_id := :job, active := false)")
        connection.execute(alter, {"job": key})


PG_CRON = Kind(
    "pg_cron",
    read,
    (ONE_AT_A_TIME, COMMAND),
    own_overlap=True,
    switch_off=off,
)
