"""sqlalchemy-celery-beat: its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from celery_pgbeat.moving.answers import Answer, answered
from celery_pgbeat.moving.kind import DRIFT, NIGHTS, OVERDUE, Kind, Request
from celery_pgbeat.moving.kinds.celery_tables import answer_of
from celery_pgbeat.moving.readers.tables import switch_off, tables_at

SCHEMA = "celery_schema"  # where its own default puts its tables
SCHEDULES = ("interval", "crontab", "solar", "clocked")


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the periodic tasks."""
    with tables_at(request.source, request.database.url, request.read) as tables:
        tasks = tables.rows("celery_periodictask", SCHEMA)
        schedules = {kind: tables.by_id(f"celery_{kind}schedule", SCHEMA) for kind in SCHEDULES}
    for row in tasks:
        kind = next((kind for kind in SCHEDULES if row["discriminator"] == f"{kind}schedule"), None)
        schedule = schedules[kind].get(row["schedule_id"], {}) if kind else {}
        yield answered(row["name"], partial(answer_of, row, kind, schedule, request.now, ends=False))


def off(connection: Any, keys: Collection[Any]) -> None:
    """Switch periodic tasks off, as its models do."""
    switch_off(connection, "celery_periodictask", "celery_periodictaskchanged", keys, SCHEMA)


SQLALCHEMY_CELERY_BEAT = Kind(
    "sqlalchemy-celery-beat",
    read,
    (DRIFT, OVERDUE, NIGHTS),
    switch_off=off,
)
