"""django-celery-beat: its tables, without Django."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from celery_pgbeat.moving.answers import Answer, answered
from celery_pgbeat.moving.kind import DRIFT, NIGHTS, OVERDUE, Kind, Request
from celery_pgbeat.moving.kinds.celery_tables import answer_of
from celery_pgbeat.moving.readers.tables import switch_off, tables_at

PREFIX = "django_celery_beat_"
SCHEDULES = ("interval", "crontab", "solar", "clocked")  # of several, the peer takes the first


def read(request: Request) -> Iterator[Answer]:
    """Iterate over the periodic tasks."""
    with tables_at(request.source, request.database.url, request.read) as tables:
        tasks = tables.rows(f"{PREFIX}periodictask")
        schedules = {kind: tables.by_id(f"{PREFIX}{kind}schedule") for kind in SCHEDULES}
    for row in tasks:
        kind = next((kind for kind in SCHEDULES if row.get(f"{kind}_id") is not None), None)
        schedule = schedules[kind].get(row[f"{kind}_id"], {}) if kind else {}
        yield answered(row["name"], partial(answer_of, row, kind, schedule, request.now, ends=True))


def off(connection: Any, keys: Collection[Any]) -> None:
    """Switch periodic tasks off, as the admin pages do."""
    switch_off(connection, f"{PREFIX}periodictask", f"{PREFIX}periodictasks", keys)


DJANGO_CELERY_BEAT = Kind(
    "django-celery-beat",
    read,
    (DRIFT, OVERDUE, NIGHTS),
    switch_off=off,
)
