"""Rows that are due and decisions about them, for tests of the statements."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.planning import Decision, Due, Planned, PlanningRow, Skipped, Unplanned, job_id
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.database import Database
from tests.harness.rows import insert_statement

LEASE = timedelta(seconds=15)
HOUR = timedelta(hours=1)


def beat(url: str, name: str = "beat-a", lease: timedelta = LEASE) -> BeatQueries:
    return BeatQueries(Database(url), name, lease)


def insert(store: BeatQueries, name: str, **columns: Any) -> None:
    """Insert a row that is due each hour."""
    store.database.execute(*insert_statement(name, **{"schedule": "every 1h", **columns}))


def make_due(store: BeatQueries, name: str, **columns: Any) -> None:
    """Insert a row that is due now."""
    (row,) = store.database.execute("select statement_timestamp()")
    insert(store, name, next_run_at=row[0], **columns)


def plan_ahead(store: BeatQueries, name: str) -> None:
    """Have a row due now whose next runs a beat has planned, inserted if it is not there: a mark submits it at once."""
    if not store.database.execute("select from pgbeat.periodic_task where name = %(name)s", {"name": name}):
        insert(store, name, timezone="UTC")
    store.database.execute(
        "set session_replication_role = replica; "
        "update pgbeat.periodic_task set planned_revision = revision, next_run_at = at, planned_for = at, "
        "planned_ahead = array[at, at + interval '1 hour'] "
        f"from (select pgbeat.now() as at) as now where name = '{name}'; reset session_replication_role"
    )


def decided(row: Due, next_run_at: datetime | None = None, skipped: Skipped | None = None) -> Decision:
    """Decide to submit the due occurrence; by default the next run is an hour later."""
    instant = row.next_run_at
    return Decision(
        row=row,
        job=job_id(row.name, row.created_at, instant),
        scheduled_for=instant,
        due_at=instant,
        origin="schedule",
        skipped=skipped,
        decided_until=instant,
        next_run_at=next_run_at or instant + HOUR,
        planned_for=next_run_at or instant + HOUR,
        pickup_deadline=HOUR,
    )


def planned(row: PlanningRow, next_run_at: datetime | None, problem: str | None = None) -> Planned:
    """Answer for a row that was read to be planned."""
    return Planned(
        name=row.name,
        revision=row.revision,
        planned_from=row.planned_from,
        next_run_at=next_run_at,
        planned_for=next_run_at,
        pickup_deadline=HOUR,
        problem=problem,
        replaces=row.planned_for if isinstance(row, Unplanned) else None,
    )


def submit(store: BeatQueries, rows: list[Due], judging: bool = True, resending: bool = True) -> dict[str, bool]:
    """Submit all rows; return which of them made a job."""
    answers = store.submit([decided(row) for row in rows], "UTC", judging, resending)
    return {answer.name: answer.made for answer in answers}


def jobs(store: BeatQueries) -> list[dict[str, Any]]:
    rows = store.database.execute("select * from pgbeat.job order by scheduled_for, created_at")
    return [dict(row._mapping) for row in rows]


def row_of(store: BeatQueries, name: str) -> dict[str, Any]:
    (row,) = store.database.execute("select * from pgbeat.periodic_task where name = %(name)s", {"name": name})
    return dict(row._mapping)
