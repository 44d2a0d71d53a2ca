"""Setting the database's clock: `pgbeat.now()` replaced, in one test's database, by a function that reads a table.

The function stays stable, as the product's own: a volatile one would keep the index on `next_run_at` from being used.
The table `probe` follows the same clock.
"""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import psycopg2

_INSTALL = """
create table if not exists public.pgbeat_test_clock (
    at timestamptz not null,                          -- the instant it shows while it is stopped
    running boolean not null default true,
    "offset" interval not null default '0',           -- while it runs: how far it is ahead of the real one
    one boolean primary key default true check (one)
);
insert into public.pgbeat_test_clock (at) values (statement_timestamp()) on conflict do nothing;
create or replace function "{schema}".now() returns timestamptz language sql stable parallel safe as
    $$ select case when running then statement_timestamp() + "offset" else at end from public.pgbeat_test_clock $$;
create or replace function public.probe_now() returns timestamptz language sql volatile as
    $$ select case when running then clock_timestamp() + "offset" else at end from public.pgbeat_test_clock $$;
"""


class Clock:
    """The clock of one migrated database; it shows the real time until it is set.

    Example:
        >>> clock = Clock(migrated_database)  # doctest: +SKIP
        >>> clock.stand_at(datetime(2027, 3, 28, 0, 59, tzinfo=timezone.utc))  # doctest: +SKIP
        >>> clock.advance(timedelta(minutes=2))  # doctest: +SKIP
    """

    def __init__(self, url: str, schema: str = "pgbeat") -> None:
        self._url = url
        self._schema = schema
        self._execute(_INSTALL.format(schema=schema))

    def now(self) -> datetime:
        """Read it."""
        shown: datetime = self._execute(f'select "{self._schema}".now()')
        return shown

    def stand_at(self, instant: datetime) -> None:
        """Stop it at an aware instant."""
        self._execute("update pgbeat_test_clock set running = false, at = %s returning at", instant)

    def run_from(self, instant: datetime) -> None:
        """Set it to an aware instant, from which it runs on."""
        self._execute(
            'update pgbeat_test_clock set running = true, "offset" = %s - statement_timestamp() returning at', instant
        )

    def advance(self, step: timedelta) -> None:
        """Move it, standing or running, on by a step, or back by a negative one."""
        self._execute('update pgbeat_test_clock set at = at + %s, "offset" = "offset" + %s returning at', step, step)

    def _execute(self, statement: str, *values: object) -> Any:
        with closing(psycopg2.connect(self._url)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement, values or None)
                return cursor.fetchone()[0] if cursor.description else None
