"""Jobs written directly to the tables and read back, for tests of what workers do with them."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

from celery_pgbeat.postgres.database import Database

HOUR = timedelta(hours=1)


def make_job(database: Database, **columns: Any) -> uuid.UUID:
    """Insert a job that was sent and not picked up yet; columns override the defaults."""
    values: dict[str, Any] = {
        "id": uuid.uuid4(),
        "periodic_task": "nightly",
        "origin": "schedule",
        "state": "sent",
        "exclusive": True,
        "task": "app.probe",
        "message": json.dumps({"args": [], "kwargs": {}}),
        "on_lost": "give_up",
        "tracking": "full",
        "pickup_deadline": HOUR,
        "sends": 1,
        "wait_reason": "predecessor" if columns.get("state") == "buffered" else None,
        **columns,
    }
    names, parameters = ", ".join(values), ", ".join(f"%({column})s" for column in values)
    database.execute(
        f"insert into pgbeat.active_job ({names}, scheduled_for, busy_until) "
        f"values ({parameters}, pgbeat.now(), pgbeat.now() + interval '1 hour')",
        values,
    )
    return values["id"]  # type: ignore[no-any-return]


def bury(database: Database, job: uuid.UUID) -> None:
    """Give a job up as lost, as `judge` does once it has been silent for too long and sent often enough."""
    statement = (
        "update pgbeat.active_job set check_at = 'epoch', busy_until = pgbeat.now() - interval '1 s' where id = %(job)s"
    )
    database.execute(statement, {"job": job})
    database.run("judge", batch=100, resending=False)


def active(database: Database, job: uuid.UUID) -> dict[str, Any] | None:
    """Return the row of a job that is not final, without `check_at`: not every driver reads '-infinity'."""
    (row,) = database.execute(
        "select string_agg(quote_ident(attname), ', ') as columns from pg_attribute "
        "where attrelid = 'pgbeat.active_job'::regclass and attnum > 0 and not attisdropped and attname <> 'check_at'"
    )
    return _row(database, f"select {row.columns}, busy_until - pgbeat.now() as patience from pgbeat.active_job", job)


def finished(database: Database, job: uuid.UUID) -> dict[str, Any] | None:
    """Return the row of a final job."""
    return _row(database, "select * from pgbeat.finished_job", job)


def state(database: Database, job: uuid.UUID) -> str | None:
    """Return a job's state, wherever it is."""
    rows = database.execute("select state from pgbeat.job where id = %(job)s", {"job": job})
    assert len(rows) <= 1, "a job is in one place"
    return rows[0].state if rows else None


def _row(database: Database, select: str, job: uuid.UUID) -> dict[str, Any] | None:
    rows = database.execute(f"{select} where id = %(job)s", {"job": job})
    assert len(rows) <= 1
    return dict(rows[0]._mapping) if rows else None
