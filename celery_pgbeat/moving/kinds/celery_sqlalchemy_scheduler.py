"""celery-sqlalchemy-scheduler: its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from celery_pgbeat.moving.answers import Answer, answered
from celery_pgbeat.moving.kind import DRIFT, NIGHTS, OVERDUE, Kind, Request
from celery_pgbeat.moving.kinds.celery_tables import answer_of
from celery_pgbeat.moving.readers.tables import switch_off, tables_at

SCHEDULES = ("interval", "crontab", "solar")  # of several, the peer takes the first that exists
START = "A start is an exact instant: there its wall-clock reading is taken in the app's zone."


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the periodic tasks."""
    with tables_at(request.source, request.database.url, request.read) as tables:
        tasks = tables.rows("celery_periodic_task")
        schedules = {kind: tables.by_id(f"celery_{kind}_schedule") for kind in SCHEDULES}
    for row in tasks:
        named = [kind for kind in SCHEDULES if row[f"{kind}_id"] is not None]
        kind = next((kind for kind in named if row[f"{kind}_id"] in schedules[kind]), next(iter(named), None))
        schedule = schedules[kind].get(row[f"{kind}_id"], {}) if kind else {}
        yield answered(row["name"], partial(answer_of, row, kind, schedule, request.now, ends=False))


def off(connection: Any, keys: Collection[Any]) -> None:
    """Switch periodic tasks off, as its models do."""
    switch_off(connection, "celery_periodic_task", "celery_periodic_task_changed", keys)


CELERY_SQLALCHEMY_SCHEDULER = Kind(
    "celery-sqlalchemy-scheduler",
    read,
    (DRIFT, OVERDUE, NIGHTS, START),
    switch_off=off,
)
