"""The table `probe`: which process ran which task and when, by the database's clock, written by the tasks."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg2

from tests.harness.connections import fetch

PATIENCE = 60.0  # seconds that a record waits for a database that is away: an outage must not hide a run

_TABLE = """
create table if not exists probe (
    id uuid primary key,
    job text not null,
    periodic_task text,
    label text not null,
    origin text,
    scheduled_for timestamptz,
    attempt int not null,
    started_at timestamptz not null,
    finished_at timestamptz,
    failed boolean,
    pid int not null,
    worker text
);
create or replace function probe_now() returns timestamptz language sql volatile as 'select clock_timestamp()';
"""

_BEGIN = """
insert into probe (id, job, periodic_task, label, origin, scheduled_for, attempt, started_at, pid, worker)
values (%(id)s, %(job)s, %(periodic_task)s, %(label)s, %(origin)s, %(scheduled_for)s, %(attempt)s,
        probe_now() - %(age)s * interval '1 second', %(pid)s, %(worker)s)
on conflict do nothing
"""

_END = """
update probe set finished_at = probe_now() - %(age)s * interval '1 second', failed = %(failed)s where id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One start of a task's body.

    Attributes:
        periodic_task, origin, scheduled_for: from the message's header `pgbeat`; None where it has none.
        attempt: Celery's count of retries, 0 for the first.
        finished_at: None while it runs, and for ever if its process was killed.
    """

    job: str
    label: str
    started_at: datetime
    periodic_task: str | None = None
    origin: str | None = None
    scheduled_for: datetime | None = None
    attempt: int = 0
    finished_at: datetime | None = None
    failed: bool | None = None
    pid: int = 0
    worker: str | None = None

    @property
    def seen_at(self) -> datetime:
        """When it started."""
        return self.started_at


class Probe:
    """The table in one database, read by the test."""

    def __init__(self, url: str) -> None:
        self.url = url

    def create(self) -> Probe:
        """Create the table where it is not there yet."""
        _execute(self.url, _TABLE)
        return self

    def runs(self, label: str | None = None) -> list[Run]:
        """Return the runs, of one label or all, in the order of their start."""
        statement = "select * from probe where %(label)s is null or label = %(label)s order by started_at, id"
        rows = fetch(self.url, statement, {"label": label})
        return [Run(**{name: value for name, value in row.items() if name != "id"}) for row in rows]


def begin(url: str, values: Mapping[str, Any]) -> uuid.UUID:
    """Record a start and return its id, with which `end` records the end."""
    run = uuid.uuid4()
    _record(url, _BEGIN, {**values, "id": str(run)})
    return run


def end(url: str, run: uuid.UUID, *, failed: bool) -> None:
    """Record the end of a run."""
    _record(url, _END, {"id": str(run), "failed": failed})


class _Kept(threading.local):
    """The connection of this thread, or greenlet, of this process."""

    connection: Any = None
    owner: tuple[int, str] | None = None

    def of(self, url: str) -> Any:
        """Return the connection; make it if there is none yet."""
        if self.connection is None or self.owner != (os.getpid(), url):
            self.connection = psycopg2.connect(url)
            self.connection.autocommit = True
            self.owner = (os.getpid(), url)
        return self.connection


_kept = _Kept()


def _record(url: str, statement: str, values: Mapping[str, Any]) -> None:
    """Write even if the database is away for a while: then the instant is reckoned back, by the age of what happened.

    A commit whose answer was lost is sent again; the id, which we chose, keeps it from counting twice. The connection
    is kept: to connect for each record takes more of the processors than the work of beats and workers does.
    """
    happened = time.monotonic()
    while True:
        try:
            connection = _kept.of(url)
            with connection.cursor() as cursor:
                return cursor.execute(statement, {**values, "age": time.monotonic() - happened})
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            _kept.connection = None
            if time.monotonic() - happened > PATIENCE:
                raise
            time.sleep(0.1)


def _execute(url: str, statement: str) -> None:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
