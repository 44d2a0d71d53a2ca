"""The rows as Celery's entries: the value of `Scheduler.schedule`, for monitors, health checks and `beat_init`
handlers.

Rows are read when an entry is asked for, and only up to a limit. A cycle of the beat never uses this: a million rows
must cost it nothing. Writing an entry declares it, as `beat_schedule` does: the beat then writes it to the row.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import BaseSchedule, crontab, maybe_schedule, schedule
from sqlalchemy.exc import DBAPIError

from celery_pgbeat.beat.row_schedule import RowSchedule
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.declare import app_timezone, timing_of
from celery_pgbeat.declare.call import plain
from celery_pgbeat.errors import InvalidPeriodicTask, PgBeatError, SchemaMissing
from celery_pgbeat.postgres import migrate
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.schedules import Schedule, parse
from celery_pgbeat.texts.plain_json import Unreadable, read_json
from celery_pgbeat.texts.redaction import MASK

logger = logging.getLogger(__name__)

LIMIT = 1000  # rows that one iteration shows at most
SHOWN = ("task", "schedule", "args", "kwargs", "options", "relative", "last_run_at", "total_run_count")


class RowEntry(ScheduleEntry):
    """An entry whose `repr` shows no arguments of a sensitive row."""

    def __init__(self, *args: Any, sensitive: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sensitive = sensitive

    def __repr__(self) -> str:
        if not self.sensitive:
            return str(super().__repr__())
        return f"<{type(self).__name__}: {self.name} {self.task}({MASK}) {self.schedule}>"


class Entries(MutableMapping[str, ScheduleEntry]):
    """A mapping from name to entry: the enabled rows, and entries that were added here and are no rows yet.

    Setting an entry declares it, deleting it withdraws the declaration. Rows that the code does not declare are only
    shown.
    """

    def __init__(self, app: Celery, database: Database, code: CodeSchedules) -> None:
        self._app = app
        self._database = database
        self._code = code

    def __getitem__(self, name: str) -> ScheduleEntry:
        rows = self._rows(name, 1)
        if rows:
            return self._entry(rows[0])
        return entry_of_given(name, self._code.additions.current.given[name], self._app)

    def __iter__(self) -> Iterator[str]:
        names = [row.name for row in self._rows(None, LIMIT)]
        yield from names
        yield from self._code.additions.current.given.keys() - set(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __setitem__(self, name: str, entry: Any) -> None:
        self.update({name: entry})

    def __delitem__(self, name: str) -> None:
        if name not in self._code.names:
            if name not in self:
                raise KeyError(name)
            raise InvalidPeriodicTask(
                f"{name!r} is a row that the code of this app does not declare: remove it with "
                f"beat.unschedule({name!r}), or in SQL"
            )
        self._code.additions.remove(name)

    def update(self, *others: Any, **named: Any) -> None:
        """Declare entries in addition to the others."""
        self._code.additions.add(_declarable(dict(*others, **named)))

    def replace(self, entries: Mapping[str, Any]) -> None:
        """Declare these entries instead of those of `beat_schedule`."""
        self._code.additions.replace(_declarable(entries))

    def clear(self) -> None:
        """Withdraw every entry of `beat_schedule`."""
        self.replace({})

    def _rows(self, name: str | None, limit: int) -> Sequence[Any]:
        """Read rows; there are none before the first beat has made the schema in its first cycle."""
        try:
            return self._database.run("entries", name=name, limit=limit)
        except DBAPIError:
            try:
                migrate.check(self._database.engine, self._database.schema)
            except SchemaMissing as error:
                logger.info("No entries can be shown yet. %s", error, extra={"action": "show"})
                return []
            raise

    def _entry(self, row: Any) -> ScheduleEntry:
        columns = {"queue": row.queue, "priority": row.priority}
        options = read_json(row.options)
        args, kwargs = _arguments(row.args, row.kwargs)
        return RowEntry(
            name=row.name,
            task=row.task,
            last_run_at=row.last_run_at,
            total_run_count=row.run_count,
            schedule=shown_schedule(row.schedule, row.timezone, row.name, row.anchor, self._app),
            args=args,
            kwargs=kwargs,
            options={
                **(options if isinstance(options, dict) else {}),
                **{name: value for name, value in columns.items() if value is not None},
            },
            app=self._app,
            sensitive=row.sensitive,
        )


def _arguments(args: str, kwargs: str) -> tuple[Any, Any]:
    """Return the arguments of a row, or why they cannot be read."""
    for text in (args, kwargs):
        read = read_json(text)
        if isinstance(read, Unreadable):
            return [read], {}
    return plain(args), plain(kwargs)


def entry_of_given(name: str, given: Any, app: Celery, kind: type[ScheduleEntry] = ScheduleEntry) -> ScheduleEntry:
    """Return what was declared as an entry of Celery's, with the fields that such an entry can have.

    A wrong value is logged when the beat reads the entry, as it is for an entry in `beat_schedule`.
    """
    if isinstance(given, ScheduleEntry):
        given.app = app
        return given
    values = given if isinstance(given, Mapping) else {}
    fields = {key: values[key] for key in SHOWN if key in values}
    when = fields.get("schedule")
    if when is not None and not isinstance(when, (int, float, timedelta, BaseSchedule)):
        fields["schedule"] = _described(when, name, app)
    return kind(name=name, app=app, **fields)


def _described(when: Any, name: str, app: Celery) -> BaseSchedule:
    """Return the Celery schedule that is nearest to one of ours."""
    try:
        timing = timing_of(when, app_timezone(app))
    except PgBeatError:
        return RowSchedule(str(when), None, app)
    return shown_schedule(timing.text, timing.timezone, name, app.now(), app)


def _declarable(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entries, unless one only shows a row: its schedule may be only an approximation of the row's.

    Raises:
        InvalidPeriodicTask: one was read from a row; names it.
    """
    for name, entry in entries.items():
        if isinstance(entry, RowEntry):
            raise InvalidPeriodicTask(
                f"the entry given for {name!r} only shows a row: change the row with beat.schedule({entry.name!r}, …) "
                f"or in SQL, or give a new entry"
            )
    return entries


def shown_schedule(text: str | None, zone: str | None, name: str, instant: datetime, app: Celery) -> BaseSchedule:
    """Return Celery's own schedule if it has an equal one, otherwise ours.

    Monitors show it. It never decides when anything runs.
    """
    if text is None:
        return RowSchedule(None, None, app)
    try:
        parsed = parse(text, zone or "UTC", name=name, anchor=instant)
    except PgBeatError:  # the column `problem` has the reason
        return RowSchedule(text, None, app)
    return celery_schedule(parsed, instant, app) or RowSchedule(text, parsed, app)


def celery_schedule(parsed: Schedule, instant: datetime, app: Celery) -> BaseSchedule | None:
    """Return the Celery schedule that describes this one best, or None if Celery has nothing like it."""
    if parsed.kind_info.celery_class == "schedule":
        first = parsed.next(instant)
        return None if first is None else maybe_schedule(schedule(first - instant, app=app), app=app)
    if parsed.kind_info.celery_class != "crontab":
        return None
    fields = parsed.text.removeprefix("crontab:").removeprefix("cron:").split()
    try:
        minute, hour, day_of_month, month_of_year, day_of_week = fields
        shown = crontab(minute, hour, day_of_week, day_of_month, month_of_year, app=app)
    except ValueError:
        return None  # no five fields, or fields that only we know
    shown.tz = ZoneInfo(parsed.timezone)  # otherwise that of the app, which Sentry would give the monitor
    return shown
