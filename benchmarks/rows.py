"""Periodic tasks as a beat has left them: planned, so that what is measured is the firing alone."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from benchmarks.ground import QUEUE, execute
from celery_pgbeat.planning.ahead import MOST_AHEAD

HOUR, DAY = 3_600, 86_400  # seconds
ANCHOR = datetime(2026, 1, 1, tzinfo=timezone.utc)  # in the past: an interval begins with its anchor
# A beat leaves up to `MOST_AHEAD` runs behind the next one in a row, which are used up one by one. Rows that were made
# at different times are at different places of that: of one in `MOST_AHEAD + 1` none is left.
LEFT = f"abs(hashtext(name) %% {MOST_AHEAD + 1})"
AHEAD = f"""planned_ahead = array(
        select {{next_run}} + n * %s * interval '1 second'
        from generate_series({LEFT} - {MOST_AHEAD}, {LEFT}) as n)"""
AS_A_BEAT = "set session_replication_role = replica"  # the row trigger would take it for a change of the definition


def insert(database: str, rows: int, schedule: str, due: datetime, task: str = "app.probe") -> float:
    """Insert rows that are planned for an instant, as a beat would have planned them.

    Returns the seconds to allow for planning them again (`set_due`).
    """
    execute(
        database,
        "insert into pgbeat.periodic_task (name, task, args, schedule, timezone, overlap, queue, anchor)"
        " select 'row-' || n, %s, jsonb_build_array('row ' || n), %s, 'UTC', 'allow', %s, %s"
        " from generate_series(1, %s) as n",
        [task, schedule, QUEUE, ANCHOR, rows],
    )
    begun = time.monotonic()
    set_due(database, due)
    took = time.monotonic() - begun
    execute(database, "vacuum analyze pgbeat.periodic_task")
    return 2 * took


def set_due(database: str, due: datetime, every: int = HOUR) -> None:
    """Plan all rows for an instant, and for more at this distance in seconds; leave no checkpoint for the measure."""
    execute(
        database,
        f"{AS_A_BEAT}; update pgbeat.periodic_task set planned_revision = revision, next_run_at = %s, planned_for = %s,"
        f" {AHEAD.format(next_run='%s::timestamptz')}",
        [due, due, due, every],
    )
    execute(database, "checkpoint")


def insert_spread(database: str, rows: int, every: int, task: str = "app.probe") -> None:
    """Insert rows that are each due every `every` seconds, evenly one after the other; see `set_due_spread`."""
    execute(
        database,
        "insert into pgbeat.periodic_task (name, task, args, schedule, timezone, overlap, queue, anchor)"
        " select 'row-' || n, %s, jsonb_build_array('row ' || n), %s, 'UTC', 'allow', %s,"
        " %s::timestamptz + n * (%s::float8 / %s) * interval '1 second' from generate_series(0, %s - 1) as n",
        [task, f"every {every}s", QUEUE, ANCHOR, every, rows, rows],
    )
    set_due_spread(database, far(every), every)
    execute(database, "vacuum analyze pgbeat.periodic_task")


def set_due_spread(database: str, begin: datetime, every: int) -> None:
    """Plan each row for its own instant within the interval that begins then (a whole number of them since ANCHOR)."""
    assert (begin - ANCHOR).total_seconds() % every == 0, (begin, every)
    next_run = "(%s::timestamptz + (anchor - %s))"
    execute(
        database,
        f"{AS_A_BEAT}; update pgbeat.periodic_task set planned_revision = revision, next_run_at = {next_run},"
        f" planned_for = {next_run}, {AHEAD.format(next_run=next_run)}",
        [begin, ANCHOR, begin, ANCHOR, begin, ANCHOR, every],
    )
    execute(database, "checkpoint")


def announce_worker(database: str) -> None:
    """Announce a worker that tracks its jobs, as in production: without one, `tracking = full` does not act as such."""
    execute(
        database,
        "insert into pgbeat.node (id, role, hostname, pid, version, tracking)"
        " values ('benchmark', 'worker', 'benchmark', 0, 'benchmark', true)",
    )


def soon(seconds: float, step: int) -> datetime:
    """Return the first whole multiple of `step` seconds (since 1970) that is at least `seconds` away."""
    return datetime.fromtimestamp((time.time() + seconds) // step * step + step, timezone.utc)


def far(step: int) -> datetime:
    """Return an instant at which no measure runs any more."""
    return soon(300 * DAY, step)
