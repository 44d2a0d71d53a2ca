"""What grows: dead rows, and the days of the history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding
from celery_pgbeat.cli.output import number
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.settings import Settings

DAY = timedelta(days=1)
DAYS_AHEAD = 7  # of the 14 that beats make; fewer mean that for a week nobody could
FEW_DEAD = 10_000  # rows; Postgres clears up when there are more than some share of the table
DEAD_SHARE = 0.5  # of all rows; queries slow down from there on
LONG_TRANSACTION = timedelta(hours=1)
DEAD_ROWS = "each run of a task leaves dead rows behind."


def bloat(operators: AdminQueries) -> Iterator[Finding]:
    """Look for dead rows that nobody clears away."""
    schema = operators.database.schema
    tables = operators.tables()
    if not all(table["autovacuum"] for table in tables):
        yield Finding(WARNING, "Autovacuum is off in the whole server.", f"Turn it on: {DEAD_ROWS}")
    for table in tables:
        dead, live = table["dead"], table["live"]
        if not table["vacuumed_by_itself"]:
            yield Finding(
                WARNING,
                f"Autovacuum is off for the table {table['name']!r}.",
                f"Turn it on (alter table {schema}.{table['name']} reset (autovacuum_enabled)): {DEAD_ROWS}",
            )
        if dead > FEW_DEAD and dead > DEAD_SHARE * (dead + live):
            yield Finding(
                WARNING,
                f"{dead} of the {dead + live} rows of the table {table['name']!r} are dead.",
                f"Look for a transaction that stays open, and run `vacuum {schema}.{table['name']}`.",
            )
    oldest = operators.oldest_transaction()
    if oldest is not None and oldest["since"] is not None:
        age = operators.clock() - oldest["since"]
        if age > LONG_TRANSACTION:
            yield Finding(
                WARNING,
                f"A transaction (pid {oldest['pid']}, {oldest['application'] or 'unnamed'}) is open for "
                f"{age.total_seconds() / 3600:.1f} h: dead rows pile up in all tables meanwhile.",
                f"End it: select pg_terminate_backend({oldest['pid']})",
            )


def days(operators: AdminQueries, settings: Settings) -> Iterator[Finding]:
    """Look whether the days of the history are made in time, dropped in time, and hold all rows."""
    found = operators.days()
    today, there = found["today"], set(found["days"])
    missing = [day for ahead in range(DAYS_AHEAD) if (day := today + ahead * DAY) not in there]
    if missing:
        yield Finding(
            ERROR if missing[0] <= today + DAY else WARNING,
            f"Missing in the history ahead: {number(len(missing), 'day')}, the first is {missing[0]}.",
            "A beat makes them each hour: look whether one lives and may execute make_days(), or run "
            f"`select {operators.database.schema}.make_days()`.",
        )
    # A day is dropped once it is wholly older; a day more for the beat's next round.
    old = [day for day in there if day < today - settings.retention - 2 * DAY]
    if old:
        yield Finding(
            WARNING,
            f"Older than pgbeat_retention ({settings.retention.days} days) and not dropped: "
            f"{number(len(old), 'day')} of the history, the first is {min(old)}.",
            "A beat drops them each hour: look whether one lives and may execute prune(), or whether a long "
            "transaction reads them.",
        )
    if found["fallen"]:
        yield Finding(
            NOTE,
            "Some final jobs lie in the default partition of the history, for which no day was made in time.",
            "A beat moves them when it makes their day, and deletes them when they are older than pgbeat_retention.",
        )
