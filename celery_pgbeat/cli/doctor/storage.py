"""What grows: dead rows, and the partitions of the history, one per day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from celery_pgbeat.cli.doctor.finding import ERROR, NOTE, WARNING, Finding
from celery_pgbeat.cli.output.values import number
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.settings import Settings

DAY = timedelta(days=1)
DAYS_AHEAD = 7  # of the 14 that beats create; fewer mean that no beat could create one for a week
FEW_DEAD = 10_000  # rows; Postgres vacuums a table when a share of its rows is dead
DEAD_SHARE = 0.5  # of all rows; queries slow down from there on
LONG_TRANSACTION = timedelta(hours=1)
DEAD_ROWS = "each run of a task leaves dead rows behind."


def bloat(operators: AdminQueries) -> Iterator[Finding]:
    """Look for dead rows that no vacuum removes."""
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
                f"{age.total_seconds() / 3600:.1f} h: until it ends, dead rows pile up in all tables.",
                f"End it: select pg_terminate_backend({oldest['pid']})",
            )


def days(operators: AdminQueries, settings: Settings) -> Iterator[Finding]:
    """Check that beats create and drop the partitions of the history in time, and that all rows are in them."""
    found = operators.days()
    today, there = found["today"], set(found["days"])
    missing = [day for ahead in range(DAYS_AHEAD) if (day := today + ahead * DAY) not in there]
    if missing:
        yield Finding(
            ERROR if missing[0] <= today + DAY else WARNING,
            f"The history lacks partitions for {number(len(missing), 'coming day')}, the first is {missing[0]}.",
            "A beat creates them each hour: check that one is alive and may execute make_days(), or run "
            f"`select {operators.database.schema}.make_days()`.",
        )
    # A beat drops a day once all of it is older; one day more is allowed for the beat's next round.
    old = [day for day in there if day < today - settings.retention - 2 * DAY]
    if old:
        yield Finding(
            WARNING,
            f"The history still has {number(len(old), 'day')} from before pgbeat_retention "
            f"({settings.retention.days} days), the first is {min(old)}.",
            "A beat drops them each hour: check that one is alive and may execute prune(), and that no long "
            "transaction reads them.",
        )
    if found["fallen"]:
        yield Finding(
            NOTE,
            "Some final jobs are in the default partition of the history, because their day's was not created in time.",
            "A beat moves them when it creates that day, and deletes them when they are older than pgbeat_retention.",
        )
