"""The rows as Celery's entries, for whoever looks at `Scheduler.schedule`: monitors and health checks.

Reading is lazy and limited. Our own tick never comes here: a million rows must cost it nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import BaseSchedule, crontab, maybe_schedule, schedule
from kombu.utils.json import loads

from celery_pgbeat.errors import PgBeatError
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.schedules import parse
from celery_pgbeat.sensitive import MASK

LIMIT = 1000  # entries that one iteration shows at most


class RowEntry(ScheduleEntry):
    """An entry whose `repr` shows no arguments of a sensitive row."""

    sensitive = False

    def __repr__(self) -> str:
        if not self.sensitive:
            return str(super().__repr__())
        return f"<{type(self).__name__}: {self.name} {self.task}({MASK}) {self.schedule}>"


class Entries(Mapping[str, ScheduleEntry]):
    """A read-only mapping from name to entry over the enabled rows."""

    def __init__(self, app: Celery, database: Database) -> None:
        self._app = app
        self._database = database

    def __getitem__(self, name: str) -> ScheduleEntry:
        rows = self._database.run("entries", name=name, limit=1)
        if not rows:
            raise KeyError(name)
        return self._entry(rows[0])

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in self._database.run("entries", name=None, limit=LIMIT))

    def __len__(self) -> int:
        return len(self._database.run("entries", name=None, limit=LIMIT))

    def _entry(self, row: Any) -> ScheduleEntry:
        described = celery_schedule(row.schedule, row.timezone, row.name, row.anchor, self._app)
        columns = {"queue": row.queue, "priority": row.priority}
        entry = RowEntry(
            name=row.name,
            task=row.task,
            last_run_at=row.last_run_at,
            total_run_count=row.run_count,
            schedule=described or schedule(LIMIT, app=self._app),
            args=loads(row.args),
            kwargs=loads(row.kwargs),
            options={
                **json.loads(row.options),
                **{name: value for name, value in columns.items() if value is not None},
            },
            app=self._app,
        )
        entry.sensitive = row.sensitive
        return entry


def celery_schedule(
    text: str | None, timezone: str | None, name: str, instant: datetime, app: Celery
) -> BaseSchedule | None:
    """Return the Celery schedule that describes this text best, or None where Celery has nothing like it.

    For those who describe entries to people; never used to decide when anything runs.
    """
    if text is None:
        return None
    try:
        parsed = parse(text, timezone or "UTC", name=name, anchor=instant)
        if parsed.kind in ("cron", "crontab"):
            fields = parsed.text.removeprefix("crontab:").removeprefix("cron:").split()
            minute, hour, day_of_month, month_of_year, day_of_week = fields
            return crontab(minute, hour, day_of_week, day_of_month, month_of_year, app=app)
        if parsed.kind == "interval":
            first = parsed.next(instant)
            return None if first is None else maybe_schedule(schedule(first - instant, app=app), app=app)
    except (PgBeatError, ValueError):
        return None  # no five fields, or fields that only we know
    return None
