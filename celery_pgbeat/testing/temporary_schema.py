"""A schema of the test's own, and the clock in it.

All statements and functions ask `now()` of the schema for the time. Here it reads a table. It stays a stable function,
otherwise no index on `next_run_at` could be used.
"""

from __future__ import annotations

import os
import secrets
from datetime import datetime, timedelta, timezone
from typing import Any

from celery_pgbeat.declare.duration import read_duration
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.migrate import migrate
from celery_pgbeat.postgres.statements import rendered
from celery_pgbeat.testing.instants import at

PREFIX = "pgbeat_test_"

_EXISTS = "select 1 from pg_namespace where nspname = %(schema)s"
_MAKE = "create schema {schema}"
_TABLE = "create table {schema}.test_clock (at timestamptz not null)"
_FILL = "insert into {schema}.test_clock values (%(now)s)"
_READ = """
create or replace function {schema}.now() returns timestamptz language sql stable parallel safe
as $$ select at from {schema}.test_clock $$
"""
_SET = "update {schema}.test_clock set at = %(now)s"
_DROP = "drop schema if exists {schema} cascade"
# The first instant at which a beat would find something to do: a run, the end of a pause, of a lease, of a deadline.
# The last two are over when their instant has passed.
_NEXT = """
select least(
    (select min(next_run_at) from {schema}.periodic_task
     where enabled and not group_paused and problem is null and next_run_at > {schema}.now()),
    (select min(paused_until) from {schema}.periodic_task
     where not enabled and paused_until > {schema}.now() and isfinite(paused_until)),
    (select min(marked_at + mark_lease) + interval '1 microsecond' from {schema}.active_job
     where state = 'pending' and marked_at + mark_lease >= {schema}.now()),
    (select min(check_at) from {schema}.active_job
     where state = 'pending' and marked_at is null and check_at > {schema}.now()),
    (select min(busy_until) + interval '1 microsecond' from {schema}.active_job
     where state <> 'pending' and busy_until >= {schema}.now() and isfinite(busy_until)))
"""


class TemporarySchema:
    """A schema that the test makes and drops; it has a unique name unless one is given."""

    def __init__(self, url: str, schema: str | None = None) -> None:
        self.database = Database(url, schema or f"{PREFIX}{os.getpid()}_{secrets.token_hex(4)}")

    def make(self) -> None:
        """Make the schema, empty.

        Raises:
            ValueError: it exists already, and a test must not drop it.
            DatabaseUnavailable: Postgres is out of reach.
        """
        if self._execute(_EXISTS, schema=self.database.schema) is not None:
            raise ValueError(
                f"{self.database!r} is there already, and a test would drop it: take a database of its own, or another "
                f"name"
            )
        self._execute(_MAKE)

    def fill(self, now: datetime) -> None:
        """Migrate the schema and set its clock."""
        migrate(self.database.engine, self.database.schema)
        self._execute(_TABLE)
        self._execute(_FILL, now=now)
        self._execute(_READ)

    def show(self, now: datetime) -> None:
        """Set the schema's clock."""
        self._execute(_SET, now=now)

    def next_event(self) -> datetime | None:
        """Return the first instant after now at which a beat will have something to do; None if there is none."""
        found: datetime | None = self._execute(_NEXT)
        return None if found is None else found.astimezone(timezone.utc)

    def drop(self) -> None:
        """Drop the schema with all that is in it."""
        self._execute(_DROP)

    def _execute(self, sql: str, **parameters: Any) -> Any:
        rows = self.database.execute(rendered(sql, self.database.schema), dict(parameters) or None)
        return rows[0][0] if rows else None


class Clock:
    """The clock of one schema, in Postgres and in Python: it does not move until it is set."""

    def __init__(self, place: TemporarySchema, now: datetime) -> None:
        self._place = place
        self._now = now

    def __repr__(self) -> str:
        return f"<Clock at {self._now.isoformat()}>"

    @property
    def now(self) -> datetime:
        """What it shows, in UTC."""
        return self._now

    def set(self, when: datetime | str) -> None:
        """Set it, and do nothing else: as if no beat ran meanwhile.

        Args:
            when: see `at`.

        Raises:
            ValueError: that is earlier than what it shows.
        """
        instant = at(when)
        if instant < self._now:
            raise ValueError(f"the clock shows {self._now.isoformat()} and cannot go back to {instant.isoformat()}")
        self._place.show(instant)
        self._now = instant

    def advance(self, duration: timedelta | float | str) -> None:
        """Set it forward, and do nothing else.

        Args:
            duration: a timedelta, seconds, or text such as `1h30m`.

        Raises:
            ValueError: it is no duration, or a negative one.
        """
        self.set(self._now + read_duration("duration", duration))
