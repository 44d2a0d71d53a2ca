"""Writes to the rows what the app's code declares, by difference, so that operators can edit them too.

Each row keeps what code declared last. Only what *code* has changed since is written: an operator's pause or edit stays
until code changes that same column, and a beat that starts again with equal code writes nothing. A row that code no
longer declares is paused, never deleted. Each step is one statement. If another beat runs it at the same time, the
second of them finds the work done.

While beats of several versions run side by side, the declaration that was first seen last is in force, and the others
change nothing. With each heartbeat a beat records that its declaration has a living beat
(`announce_declaration.sql`). That decides, by the database's clock, which declaration is in force, and each write is
fenced by it. So the beats of the version before take over when those of the newer version have been silent for
`pgbeat_dead_after`: a roll-back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.upkeep.additions import Additions
from celery_pgbeat.beat.upkeep.declared import Arguments, Declared, read_declared, transfer_to_code, why
from celery_pgbeat.declare import define
from celery_pgbeat.declare.columns import LONGEST_NAME
from celery_pgbeat.declare.upstream import upstream_first
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.code_sync_queries import CodeSyncQueries, DeclarationStatus
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from celery_pgbeat.settings.app_name import manager_of
from celery_pgbeat.texts.safe_text import one_line

logger = logging.getLogger(__name__)

RECORDED_AT_MOST = 1_000  # refused declarations in the table; each is in the log
LONGEST_REASON = 1_000  # characters in the table
NAMED_AT_MOST = 10  # names in one log line; if there are more, their number is logged

UNDECLARED = (
    "Paused %s, which the code no longer declares. Remove it with unschedule, or set managed_by to 'sql' and resume it"
)

OVERRULED = (
    "Another declaration of %s is in force, and it came later. This beat has the declaration %s, and changes no row. "
    "It will when no beat with the other one has been alive for %g s"
)
IN_FORCE_AGAIN = "The declaration of %s that this beat has (%s) is in force again, for the other had no beat for %g s"
SHOWN_OF_HASH = 12  # digits in a log line

TIMES = {"schedule", "timezone", "anchor", "start_at", "end_at", "jitter"}
# Two versions of the code that run side by side for longer than this are no rolling deploy.
ROLLING = timedelta(minutes=5)
RANDOM = (
    "Beats of %s have run side by side for %d minutes, and their code differs only in the times of %s. Are these times "
    "random at import? Then each start of a beat moves them. Instead of random, write H in a cron text (a time fixed "
    "by the row's name), or use jitter"
)


class CodeSchedules:
    """The declarations of one app: `beat_schedule`, `add_periodic_task`, `@beat.periodic_task`, Celery's own.

    Args:
        app: the Celery app.
        database: where the rows are.
        settings: the app's.
        strict: raise `InvalidPeriodicTask` for a declaration that is wrong, instead of logging it and going on.

    Attributes:
        additions: what the beat's own process declares in addition, or instead, through Celery's `Scheduler`.
    """

    def __init__(self, app: Any, database: Database, settings: Settings, *, strict: bool = False) -> None:
        self._app = app
        self._strict = strict
        self._settings = settings
        self._manager = manager_of(app)
        self._declarations = CodeSyncQueries(settings.schema, database, self._manager)
        self.additions = Additions()
        self._declared: Declared | None = None
        self._logged: set[tuple[str, str]] = set()
        self._starting = True
        self._overruled = False
        self._overruled_since = 0.0
        self._compared = False  # whether this declaration was compared with the one in force
        self._synced: int | None = None  # the revision in force when the rows were written
        self._waits = False  # whether there is nothing to do until the next heartbeat
        self._announce_at = 0.0
        self._others: frozenset[str] = frozenset()  # lazy rows that are not as this code declares them

    @property
    def is_in_sync(self) -> bool:
        """Whether the rows are as declared, and the next heartbeat is not due yet."""
        return self._waits and boottime() < self._announce_at and self.declared.added is self.additions.current

    @property
    def names(self) -> list[str]:
        """Every name that the code declares."""
        return self.declared.names

    @property
    def lazy_names(self) -> list[str]:
        """The rows whose arguments only a beat with this code can make."""
        return [name for name in self.declared.lazy if name not in self._others]

    def lazy_entry(self, name: str) -> Arguments | None:
        """Return an entry's arguments with their `BeatLazyFunc`, to be evaluated when the message is made."""
        return None if name in self._others else self.declared.lazy.get(name)

    def sync(self) -> None:
        """Record that this declaration has a living beat; if it has come into force, write it to the rows.

        If that could not be finished, `is_in_sync` stays False: call this again. It is also False when the next
        heartbeat is due.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
        """
        if self.declared.added is not self.additions.current:
            self._read_again()
        status = self._declarations.announce_declaration(self.declared.hash, self._settings.dead_after, self._starting)
        self._starting = False
        self._announce_at = boottime() + self._settings.heartbeat_every.total_seconds()
        self._log_change(status)
        if status.revision is None:
            self._synced = None
            self._others = self._changed_by_others()
            self._waits = status.overruled
            self._warn_of_random_times()
        elif status.revision != self._synced:
            self._waits = False
            self._write()
            self._waits = self._review()
            self._synced = status.revision if self._waits else None
            self._others = frozenset()

    def _write(self) -> None:
        """Write to the rows what the code declares; each statement checks that this is still in force."""
        code, statements = self.declared, self._declarations
        new = self._all_or_each(lambda records: statements.insert_declared(code.hash, records, code.running_first))
        self._log("Declared %s", new, "declare")
        for name, columns in self._updated().items():
            if columns:
                logger.info("Changed %r as the code did: %s", name, ", ".join(columns), extra={"action": "update"})
        back = statements.resume_declared(code.hash, list(code.records))
        self._log("Resumed %s, which the code declares again", back, "resume")
        undeclared = statements.pause_undeclared(code.hash, code.names, f"no longer declared by {self._manager}")
        self._log(UNDECLARED, undeclared, "pause", logging.WARNING)
        statements.record_refused(code.hash, self._refused())

    def _changed_by_others(self) -> frozenset[str]:
        """Return the rows with lazy arguments in this code that other code has changed since."""
        code = self.declared
        records = [code.records[name] for name in code.lazy if name in code.records]
        if not records:
            return frozenset()
        return frozenset(self._declarations.find_differences(records, code.names)) & code.lazy.keys()

    def _log_change(self, status: DeclarationStatus) -> None:
        """Log that another declaration has come into force instead of this one, or this one again."""
        in_force = status.revision is not None
        if in_force != self._overruled or not (in_force or status.overruled):
            return
        self._overruled = not in_force
        self._overruled_since = boottime()
        message = IN_FORCE_AGAIN if in_force else OVERRULED
        shown, dead_after = self.declared.hash[:SHOWN_OF_HASH], self._settings.dead_after.total_seconds()
        logger.info(message, self._manager, shown, dead_after, extra={"action": "announce"})

    def _warn_of_random_times(self) -> None:
        """Warn once if another declaration differs only in times, and both have had beats for long."""
        alive_for = timedelta(seconds=boottime() - self._overruled_since)
        if not self._overruled or self._compared or alive_for <= ROLLING:
            return
        self._compared = True
        declared, records = self._declarations.declared(), self.declared.records
        other = {name: _differing(records[name], declared[name]) for name in records.keys() & declared.keys()}
        moved = sorted(name for name, columns in other.items() if columns)
        if moved and records.keys() == declared.keys() and set().union(*other.values()) <= TIMES:
            shown = ", ".join(map(repr, moved[:NAMED_AT_MOST])) + (", …" if len(moved) > NAMED_AT_MOST else "")
            logger.warning(RANDOM, self._manager, alive_for.total_seconds() // 60, shown, extra={"action": "announce"})

    @property
    def declared(self) -> Declared:
        """What the code declares, read at the first use."""
        if self._declared is None:
            self._declared = self._read()
        return self._declared

    def _read_again(self) -> None:
        """Read the declarations again, as a beat does that starts with new code."""
        self._declared = self._read()
        self._starting = True
        self._synced = None

    def _read(self) -> Declared:
        code = read_declared(self._app, self._settings, self.additions.current)
        for name, error in code.refused.items():
            self._refuse(name, error)
        return code

    def _refuse(self, name: str, error: Exception) -> None:
        if self._strict:
            raise InvalidPeriodicTask(f"the periodic task {name!r} in code is refused: {error}") from error
        if (name, why(error)) not in self._logged:
            self._logged.add((name, why(error)))
            logger.error(
                "The periodic task %r in code is refused, the others go on: %s",
                name,
                why(error),
                extra={"action": "refuse"},
            )

    def _refused(self) -> dict[str, str]:
        """Return what is refused, with the reasons, cut to what the table may have."""
        refused = list(self.declared.refused.items())[:RECORDED_AT_MOST]
        return {_stored(name, LONGEST_NAME): _stored(why(error), LONGEST_REASON) for name, error in refused}

    def _updated(self) -> dict[str, list[str]]:
        defaults = define("default", "default", None, {}, Settings()).record()
        changed: dict[str, list[str]] = {}

        def update(records: Sequence[dict[str, Any]]) -> list[str]:
            changed.update(self._declarations.update_declared(self.declared.hash, records, defaults))
            return []

        self._all_or_each(update)
        return changed

    def _all_or_each(self, write: Callable[[Sequence[dict[str, Any]]], list[str]]) -> list[str]:
        """Write all records at once; if Postgres refuses one of them, write each alone, behind what it comes after."""
        records = list(self.declared.records.values())
        try:
            return write(records)
        except InvalidPeriodicTask:
            written = []
            for record in upstream_first(records):
                try:
                    written += write([record])
                except InvalidPeriodicTask as error:
                    del self.declared.records[record["name"]]
                    self.declared.refuse(record["name"], error)
                    self._refuse(record["name"], error)
            return written

    def _review(self) -> bool:
        """Return whether all rows of this code are as declared; warn of those that have another manager."""
        code = self.declared
        left = self._declarations.find_differences(list(code.records.values()), code.names)
        for name, manager in left.items():
            if manager == self._manager or (name, manager) in self._logged:
                continue
            self._logged.add((name, manager))
            code.lazy.pop(name, None)
            logger.warning(
                "%r is declared in code, but its row is managed by %r and stays as it is. Rename one of them, or give "
                "the row to the code and restart the beats: %s",
                name,
                manager,
                transfer_to_code(self._settings.schema, name, self._manager),
                extra={"action": "review"},
            )
        return self._manager not in left.values()

    def _log(self, message: str, names: Sequence[str], action: str, level: int = logging.INFO) -> None:
        if len(names) > NAMED_AT_MOST:
            logger.log(level, message, f"{len(names)} periodic tasks", extra={"action": action})
            return
        for name in names:
            logger.log(level, message, repr(name), extra={"action": action})


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """Return the columns in which two declarations differ."""
    return {column for column in one.keys() | other.keys() if one.get(column) != other.get(column)}


def _stored(text: str, longest: int) -> str:
    """Return a text as Postgres stores it: of bounded length, without NUL and without halves of characters."""
    return one_line(text.encode("utf-8", "replace").decode(), longest)
