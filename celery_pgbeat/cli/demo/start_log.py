"""The log of the tasks: one row for each start of a task's body, in a table of the demo.

The table has no unique constraint, so that a second start of a job can be counted.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.statements import rendered

TABLE = """
create table {schema}.demo_start (
    periodic_task text not null,
    scheduled_for timestamptz not null,
    origin text not null,
    job uuid not null,
    pid int not null,
    started_at timestamptz not null default clock_timestamp()
)
"""

INSERT = """
insert into {schema}.demo_start (periodic_task, scheduled_for, origin, job, pid)
values (%(periodic_task)s, %(scheduled_for)s, %(origin)s, %(job)s, %(pid)s)
"""


def log_start(request: Any) -> None:
    """Log that the body of a task starts now, by the database's clock."""
    tick = request.get("pgbeat")
    if tick is None:  # not sent by a beat
        return
    database = _database()
    database.execute(
        rendered(INSERT, database.schema),
        {
            "periodic_task": tick["periodic_task"],
            "scheduled_for": tick["scheduled_for"],
            "origin": tick["origin"],
            "job": request.id,
            "pid": os.getpid(),
        },
    )


@functools.cache
def _database() -> Database:
    """Connect; first called in a pool process, so that no process shares another's connection."""
    return Database(os.environ["PGBEAT_URL"], os.environ["PGBEAT_SCHEMA"])
