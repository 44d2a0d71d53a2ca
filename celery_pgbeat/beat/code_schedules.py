"""Rows as the code declares them: synced by difference, so that code and operators can both have their say.

What code last declared is kept beside each row. Only what *code* changed since is written: an operator's pause or
edit stands until code changes that very column, and a beat that starts again with equal code writes nothing. A row
that code declares no more is paused, never deleted. Each step is one statement that another beat may do at the same
moment: what one has done the other finds done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from celery.schedules import crontab

from celery_pgbeat.declare import Definition, app_timezone, declarations_of, define
from celery_pgbeat.declare.entry import Entry, entry_of, entry_of_declaration
from celery_pgbeat.declare.lazy import has_lazy, storable_arguments
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.doors import Doors
from celery_pgbeat.schedules import parse
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

CLEANUP = "celery.backend_cleanup"
NAMED_AT_MOST = 10  # names in one log line; of more only the number is told

WITHDRAWN = (
    "Paused %s, which the code declares no more. Remove it with unschedule, or set managed_by to 'sql' and resume it"
)

Arguments = tuple[Any, Any]


@dataclass(slots=True)
class Declared:
    """What the code of an app says, read once."""

    records: dict[str, dict[str, Any]]
    running_first: list[str]
    lazy: dict[str, Arguments]
    refused: list[str]

    @property
    def names(self) -> list[str]:
        """Every name that the code knows, those refused included: their rows stay as they are."""
        return [*self.records, *self.refused]


class CodeSchedules:
    """The declarations of one app: `beat_schedule`, `add_periodic_task`, `@beat.periodic_task`, Celery's own."""

    def __init__(self, app: Any, database: Database, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._doors = Doors(settings.schema, lambda: database)
        self._manager = f"code:{app.main or '__main__'}"
        self._declared: Declared | None = None
        self._told: set[tuple[str, str]] = set()
        self.settled = False

    @property
    def lazy_names(self) -> list[str]:
        """The rows whose arguments only a beat with this code can make."""
        return list(self._code.lazy)

    def lazy_entry(self, name: str) -> Arguments | None:
        """Return an entry's arguments with their `BeatLazyFunc`, to be evaluated when the message is made."""
        return self._code.lazy.get(name)

    def sync(self) -> None:
        """Bring the rows to what the code declares. Where somebody holds a row, `settled` stays False: come again.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
        """
        code, manager = self._code, self._manager
        new = self._all_or_each(lambda records: self._doors.declare(manager, records, code.running_first))
        self._tell("Declared %s", new, "declare")
        for name, columns in self._amended().items():
            logger.info("Changed %r as the code did: %s", name, ", ".join(columns), extra={"action": "amend"})
        back = self._doors.restore(manager, list(code.records))
        self._tell("Resumed %s, which the code declares again", back, "restore")
        gone = self._doors.withdraw(manager, code.names, f"no longer declared by {manager}")
        self._tell(WITHDRAWN, gone, "withdraw", logging.WARNING)
        self._review()

    @property
    def _code(self) -> Declared:
        if self._declared is None:
            self._declared = self._read()
        return self._declared

    def _read(self) -> Declared:
        self._app.finalize()
        code = Declared({}, [], {}, [])
        for shown, read in self._entries():
            name = shown
            try:
                entry = read()
                name = entry.name
                definition, lazy = self._defined(entry)
                record = {**definition.record(), "lazy": lazy is not None}
                del record["managed_by"]
                if code.records.get(entry.name, record) != record:
                    raise InvalidPeriodicTask("declared twice in code, differently; the first one is in force")
            except Exception as error:  # noqa: BLE001  an object of the user's may raise anything; the others go on
                self._refuse(name, error, code)
                continue
            code.records[entry.name] = record
            if entry.run_on_start:
                code.running_first.append(entry.name)
            if lazy is not None:
                code.lazy[entry.name] = lazy
        return code

    def _entries(self) -> Iterator[tuple[str, Callable[[], Entry]]]:
        """Yield what the code declares, by a name for messages and still unread: each may be wrong alone."""
        schedule = self._app.conf.beat_schedule or {}
        for name, given in schedule.items():
            yield name, partial(entry_of, name, given)
        for declaration in declarations_of(self._app):
            shown = declaration.name or repr(declaration.target)
            yield shown, partial(entry_of_declaration, declaration, self._app)
        if CLEANUP not in schedule and self._needs_cleanup():
            options = {"expires": timedelta(hours=12)}
            yield CLEANUP, partial(Entry, CLEANUP, CLEANUP, crontab(minute=0, hour=4), {"options": options})

    def _needs_cleanup(self) -> bool:
        """Tell, by Celery's own rule, whether results have to be cleaned up."""
        try:
            return bool(self._app.conf.result_expires and not self._app.backend.supports_autoexpire)
        except Exception:  # a backend may raise anything when it is loaded, and schedules do not need it
            logger.exception("The result backend cannot be used; %r is not scheduled", CLEANUP)
            return False

    def _defined(self, entry: Entry) -> tuple[Definition, Arguments | None]:
        args, kwargs = entry.columns.get("args") or (), entry.columns.get("kwargs") or {}
        lazy = (args, kwargs) if has_lazy(args, kwargs) else None
        columns = dict(entry.columns)
        if lazy is not None:
            columns["args"], columns["kwargs"] = storable_arguments(args, kwargs)
        definition = define(
            entry.name, entry.task, entry.schedule, columns, self._settings, app_timezone(self._app), self._manager
        )
        deadline = self._app.conf.beat_cron_starting_deadline
        if deadline is not None and "catchup_window" not in columns and _is_cron(definition):
            definition = replace(definition, catchup_window=timedelta(seconds=deadline))
        return definition, lazy

    def _refuse(self, name: str, error: Exception, code: Declared) -> None:
        code.refused.append(str(name))
        logger.error(
            "The periodic task %r in code is refused, the others go on: %s",
            name,
            error if isinstance(error, (InvalidPeriodicTask, InvalidSchedule)) else repr(error),
            extra={"action": "refuse"},
        )

    def _amended(self) -> dict[str, list[str]]:
        defaults = define("default", "default", None, {}, Settings()).record()
        changed: dict[str, list[str]] = {}

        def amend(records: Sequence[dict[str, Any]]) -> list[str]:
            changed.update(self._doors.amend(self._manager, records, defaults))
            return []

        self._all_or_each(amend)
        return changed

    def _all_or_each(self, write: Callable[[Sequence[dict[str, Any]]], list[str]]) -> list[str]:
        """Write all records at once; where Postgres refuses one of them, each alone."""
        records = list(self._code.records.values())
        try:
            return write(records)
        except InvalidPeriodicTask:
            written = []
            for record in records:
                try:
                    written += write([record])
                except InvalidPeriodicTask as error:
                    del self._code.records[record["name"]]
                    self._refuse(record["name"], error, self._code)
            return written

    def _review(self) -> None:
        code = self._code
        left = self._doors.review(self._manager, list(code.records.values()), code.names)
        self.settled = self._manager not in left.values()
        for name, manager in left.items():
            if manager == self._manager or (name, manager) in self._told:
                continue
            self._told.add((name, manager))
            code.lazy.pop(name, None)
            logger.warning(
                "%r is declared in code, but its row is managed by %r and stays as it is. Rename one of them, or hand "
                "the row over: update %s.periodic_task set managed_by = '%s' where name = '%s'",
                name,
                manager,
                self._settings.schema,
                self._manager,
                name.replace("'", "''"),
                extra={"action": "review"},
            )

    def _tell(self, message: str, names: Sequence[str], action: str, level: int = logging.INFO) -> None:
        if len(names) > NAMED_AT_MOST:
            logger.log(level, message, f"{len(names)} periodic tasks", extra={"action": action})
            return
        for name in names:
            logger.log(level, message, repr(name), extra={"action": action})


def _is_cron(definition: Definition) -> bool:
    if definition.schedule is None:
        return False
    return parse(definition.schedule, definition.timezone, name=definition.name).kind in ("cron", "crontab")
