"""Rows as the code declares them: synced by difference, so that code and operators can both have their say.

What code last declared is kept beside each row. Only what *code* changed since is written: an operator's pause or
edit stands until code changes that very column, and a beat that starts again with equal code writes nothing. A row
that code declares no more is paused, never deleted. Each step is one statement that another beat may do at the same
moment: what one has done the other finds done.

While beats of several versions work side by side, the declaration that was first seen last is in force, and the others
change nothing. With each sign of life a beat says that its declaration has a living beat (`claim.sql`); that decides,
by the database's clock, which one is in force, and each write is fenced by it. So the beats of the version before take
over when those of the newer one have been silent for `pgbeat_dead_after`: a roll-back.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from celery.schedules import crontab

from celery_pgbeat.beat.additions import Added, Additions
from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.declare import Definition, app_timezone, declarations_of, define
from celery_pgbeat.declare.entry import Entry, entry_of, entry_of_declaration
from celery_pgbeat.declare.lazy import has_lazy, storable_arguments
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.postgres.code_sync_queries import Claim, CodeSyncQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.schedules import parse
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

CLEANUP = "celery.backend_cleanup"
NAMED_AT_MOST = 10  # names in one log line; of more only the number is told

WITHDRAWN = (
    "Paused %s, which the code declares no more. Remove it with unschedule, or set managed_by to 'sql' and resume it"
)

OVERRULED = (
    "Another declaration of %s is in force, that of a beat which came later; this one (%s) changes no row while such a "
    "beat lives"
)
IN_FORCE_AGAIN = "The declaration of %s that this beat has (%s) is in force again"
SHOWN_OF_HASH = 12  # digits in a log line

TIMES = {"schedule", "timezone", "anchor", "start_at", "end_at", "jitter"}
# Two versions of the code that live side by side for longer than this are no rolling deploy.
ROLLING = timedelta(minutes=5)
RANDOM = (
    "Beats of %s have lived side by side for %d minutes whose code differs in nothing but the times of %s. Are they "
    "random at import? Then each start of a beat moves them. In the place of random, write H in a cron text (a time "
    "fixed by the row's name), or jitter"
)

Arguments = tuple[Any, Any]


@dataclass(slots=True)
class Declared:
    """What the code of an app says, read once."""

    records: dict[str, dict[str, Any]]
    running_first: list[str]
    lazy: dict[str, Arguments]
    refused: list[str]
    added: Added = field(default_factory=Added)  # what the beat's own process had added when this was read
    hash: str = ""

    @property
    def names(self) -> list[str]:
        """Every name that the code knows, those refused included: their rows stay as they are."""
        return [*self.records, *self.refused]


class CodeSchedules:
    """The declarations of one app: `beat_schedule`, `add_periodic_task`, `@beat.periodic_task`, Celery's own.

    Attributes:
        additions: what the beat's own process declares beside them, or instead, through Celery's `Scheduler`.
    """

    def __init__(self, app: Any, database: Database, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._manager = f"code:{app.main or '__main__'}"
        self._declarations = CodeSyncQueries(settings.schema, database, self._manager)
        self.additions = Additions()
        self._declared: Declared | None = None
        self._told: set[tuple[str, str]] = set()
        self._starting = True
        self._overruled = False
        self._overruled_since = 0.0
        self._compared = False  # with the declaration in force, once
        self._synced: int | None = None  # the revision in force that the rows were brought to
        self._waits = False  # until its next sign of life there is nothing to do
        self._claim_at = 0.0
        self._others: frozenset[str] = frozenset()  # lazy here, and not as this code declares them

    @property
    def settled(self) -> bool:
        """Whether the rows are as they should be, and it is not yet time for the next sign of life."""
        return self._waits and boottime() < self._claim_at and self._code.added is self.additions.current

    @property
    def names(self) -> list[str]:
        """Every name that the code declares."""
        return self._code.names

    @property
    def lazy_names(self) -> list[str]:
        """The rows whose arguments only a beat with this code can make."""
        return [name for name in self._code.lazy if name not in self._others]

    def lazy_entry(self, name: str) -> Arguments | None:
        """Return an entry's arguments with their `BeatLazyFunc`, to be evaluated when the message is made."""
        return None if name in self._others else self._code.lazy.get(name)

    def sync(self) -> None:
        """Say that this declaration has a living beat; where it has come into force, bring the rows to it.

        Where that could not be finished `settled` stays False: come again. It is False again, too, when it is time for
        the next sign of life.

        Raises:
            DatabaseUnavailable: Postgres is out of reach.
        """
        if self._code.added is not self.additions.current:
            self._read_again()
        claim = self._declarations.claim(self._code.hash, self._settings.dead_after, self._starting)
        self._starting = False
        self._claim_at = boottime() + self._settings.heartbeat_every.total_seconds()
        self._tell_change(claim)
        if claim.revision is None:
            self._synced = None
            self._others = self._changed_by_others()
            self._waits = claim.overruled
            self._warn_of_random_times()
        elif claim.revision != self._synced:
            self._waits = False
            self._write()
            self._waits = self._review()
            self._synced = claim.revision if self._waits else None
            self._others = frozenset()

    def _write(self) -> None:
        """Bring the rows to what the code declares, as far as it is in force."""
        code, statements = self._code, self._declarations
        new = self._all_or_each(lambda records: statements.declare(code.hash, records, code.running_first))
        self._tell("Declared %s", new, "declare")
        for name, columns in self._amended().items():
            if columns:
                logger.info("Changed %r as the code did: %s", name, ", ".join(columns), extra={"action": "amend"})
        back = statements.restore(code.hash, list(code.records))
        self._tell("Resumed %s, which the code declares again", back, "restore")
        gone = statements.withdraw(code.hash, code.names, f"no longer declared by {self._manager}")
        self._tell(WITHDRAWN, gone, "withdraw", logging.WARNING)

    def _changed_by_others(self) -> frozenset[str]:
        """Return the rows that have lazy arguments in this code and are not as it declares them: they are not its."""
        code = self._code
        records = [code.records[name] for name in code.lazy if name in code.records]
        if not records:
            return frozenset()
        return frozenset(self._declarations.behind(records, code.names)) & code.lazy.keys()

    def _tell_change(self, claim: Claim) -> None:
        """Log that another declaration has come into force instead of this one, or this one again."""
        in_force = claim.revision is not None
        if in_force != self._overruled or not (in_force or claim.overruled):
            return
        self._overruled = not in_force
        self._overruled_since = boottime()
        message = IN_FORCE_AGAIN if in_force else OVERRULED
        logger.info(message, self._manager, self._code.hash[:SHOWN_OF_HASH], extra={"action": "claim"})

    def _warn_of_random_times(self) -> None:
        """Say once that another declaration has only other times than this one, if both have lived for long."""
        lived = timedelta(seconds=boottime() - self._overruled_since)
        if not self._overruled or self._compared or lived <= ROLLING:
            return
        self._compared = True
        declared, records = self._declarations.declared(), self._code.records
        other = {name: _differing(records[name], declared[name]) for name in records.keys() & declared.keys()}
        moved = sorted(name for name, columns in other.items() if columns)
        if moved and records.keys() == declared.keys() and set().union(*other.values()) <= TIMES:
            shown = ", ".join(map(repr, moved[:NAMED_AT_MOST])) + (", …" if len(moved) > NAMED_AT_MOST else "")
            logger.warning(RANDOM, self._manager, lived.total_seconds() // 60, shown, extra={"action": "claim"})

    @property
    def _code(self) -> Declared:
        if self._declared is None:
            self._declared = self._read()
        return self._declared

    def _read_again(self) -> None:
        """Read what this process has come to declare: as if a beat started with new code."""
        self._declared = self._read()
        self._starting = True
        self._synced = None

    def _read(self) -> Declared:
        self._app.finalize()
        code = Declared({}, [], {}, [], added=self.additions.current)
        for shown, read in self._entries(code.added):
            name = shown
            try:
                entry = read()
                name = entry.name
                if name in code.added.removed:
                    continue
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
        code.hash = _hash_of(code)
        return code

    def _entries(self, added: Added) -> Iterator[tuple[str, Callable[[], Entry]]]:
        """Yield what the code declares, by a name for messages and still unread: each may be wrong alone."""
        schedule = dict(added.to(self._app.conf.beat_schedule or {}))
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
            definition = Definition({**definition.values, "catchup_window": timedelta(seconds=deadline)})
        return definition, lazy

    def _refuse(self, name: str, error: Exception, code: Declared) -> None:
        code.refused.append(str(name))
        why = str(error) if isinstance(error, (InvalidPeriodicTask, InvalidSchedule)) else repr(error)
        if (str(name), why) not in self._told:
            self._told.add((str(name), why))
            logger.error(
                "The periodic task %r in code is refused, the others go on: %s", name, why, extra={"action": "refuse"}
            )

    def _amended(self) -> dict[str, list[str]]:
        defaults = define("default", "default", None, {}, Settings()).record()
        changed: dict[str, list[str]] = {}

        def amend(records: Sequence[dict[str, Any]]) -> list[str]:
            changed.update(self._declarations.amend(self._code.hash, records, defaults))
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

    def _review(self) -> bool:
        """Tell whether all rows of this code are as it declares them; warn of those that are somebody else's."""
        code = self._code
        left = self._declarations.behind(list(code.records.values()), code.names)
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
        return self._manager not in left.values()

    def _tell(self, message: str, names: Sequence[str], action: str, level: int = logging.INFO) -> None:
        if len(names) > NAMED_AT_MOST:
            logger.log(level, message, f"{len(names)} periodic tasks", extra={"action": action})
            return
        for name in names:
            logger.log(level, message, repr(name), extra={"action": action})


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """Return the columns of which two declarations say different things."""
    return {column for column in one.keys() | other.keys() if one.get(column) != other.get(column)}


def _is_cron(definition: Definition) -> bool:
    if definition.schedule is None:
        return False
    return parse(definition.schedule, definition.timezone, name=definition.name).kind in ("cron", "crontab")


def _hash_of(code: Declared) -> str:
    """Return what two beats have in common whose code declares the same, whatever process, order or Python it is.

    What is refused is no part of it: it may have no name of its own, and nobody else can tell what it would have been.
    """
    said = {"records": code.records, "running_first": sorted(code.running_first)}
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
