"""What the code of an app declares, read once. A declaration that is wrong is refused, and the others go on."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from celery.schedules import crontab

from celery_pgbeat.beat.upkeep.additions import Added
from celery_pgbeat.declare import Definition, app_timezone, declarations_of, define
from celery_pgbeat.declare.entry import Entry, entry_of, entry_of_declaration
from celery_pgbeat.declare.lazy import has_lazy, storable_arguments
from celery_pgbeat.declare.signature import check_call
from celery_pgbeat.declare.texts import is_storable
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.schedules import parse
from celery_pgbeat.settings import Settings
from celery_pgbeat.settings.app_name import manager_of

logger = logging.getLogger(__name__)

CLEANUP = "celery.backend_cleanup"

Arguments = tuple[Any, Any]


@dataclass(slots=True)
class Declared:
    """What the code of an app declares, read once."""

    records: dict[str, dict[str, Any]]
    running_first: list[str]
    lazy: dict[str, Arguments]
    refused: dict[str, Exception]
    added: Added = field(default_factory=Added)  # what the beat's own process had added by then
    hash: str = ""

    @property
    def names(self) -> list[str]:
        """Every name in the code that a row can have, also of those that were refused: their rows stay as they are."""
        return [*self.records, *filter(is_storable, self.refused)]

    def refuse(self, name: Any, error: Exception) -> None:
        """Note that a declaration is refused; the first reason counts."""
        self.refused.setdefault(str(name), error)


def read_declared(app: Any, settings: Settings, added: Added | None = None) -> Declared:
    """Read what the code of an app declares. Nothing is raised and nothing is written.

    Args:
        app: the Celery app; it is finalised.
        settings: the app's.
        added: what the beat's own process declares beside.
    """
    app.finalize()
    code = Declared({}, [], {}, {}, added=added or Added())
    for shown, read in _entries(app, code.added):
        name = shown
        try:
            entry = read()
            name = entry.name
            if name in code.added.removed:
                continue
            definition, lazy = _defined(entry, app, settings)
            record = {**definition.record(), "lazy": lazy is not None}
            del record["managed_by"]
            if code.records.get(entry.name, record) != record:
                raise InvalidPeriodicTask("declared twice in code, differently; the first one is in force")
        except Exception as error:  # noqa: BLE001  a user's object may raise anything; the others go on
            code.refuse(name, error)
            continue
        code.records[entry.name] = record
        if entry.run_on_start:
            code.running_first.append(entry.name)
        if lazy is not None:
            code.lazy[entry.name] = lazy
    code.hash = hash_of(code)
    return code


def why(error: Exception) -> str:
    """Return the reason of a refusal as text."""
    return str(error) if isinstance(error, (InvalidPeriodicTask, InvalidSchedule)) else repr(error)


def transfer_to_code(schema: str, name: str, manager: str) -> str:
    """Return the statement that gives a row to the code of an app.

    Example:
        >>> transfer_to_code("pgbeat", "nightly", "code:shop")
        "update pgbeat.periodic_task set managed_by = 'code:shop' where name = 'nightly'"
    """
    manager, name = (text.replace("'", "''") for text in (manager, name))
    return f"update {schema}.periodic_task set managed_by = '{manager}' where name = '{name}'"  # noqa: S608  shown, not run


def hash_of(code: Declared) -> str:
    """Return a hash that is equal for two beats whose code declares the same, whatever process, order or Python it is.

    Refused declarations are not part of it: they may have no name, and no other beat knows what they would have been.
    """
    declared = {"records": code.records, "running_first": sorted(code.running_first)}
    return hashlib.sha256(json.dumps(declared, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _entries(app: Any, added: Added) -> Iterator[tuple[str, Callable[[], Entry]]]:
    """Yield what the code declares: a name for messages, and a function that reads it, which may raise any error."""
    schedule = dict(added.to(app.conf.beat_schedule or {}))
    for name, given in schedule.items():
        yield name, partial(entry_of, name, given)
    for declaration in declarations_of(app):
        shown = declaration.name or repr(declaration.target)
        yield shown, partial(entry_of_declaration, declaration, app)
    if CLEANUP not in schedule and _needs_cleanup(app):
        options = {"expires": timedelta(hours=12)}
        yield CLEANUP, partial(Entry, CLEANUP, CLEANUP, crontab(minute=0, hour=4), {"options": options})


def _needs_cleanup(app: Any) -> bool:
    """Return, by Celery's own rule, whether results have to be cleaned up."""
    try:
        return bool(app.conf.result_expires and not app.backend.supports_autoexpire)
    except Exception:  # a backend may raise anything when it is loaded; schedules do not need it
        logger.exception("The result backend cannot be used; %r is not scheduled", CLEANUP)
        return False


def _defined(entry: Entry, app: Any, settings: Settings) -> tuple[Definition, Arguments | None]:
    args, kwargs = entry.columns.get("args") or (), entry.columns.get("kwargs") or {}
    lazy = (args, kwargs) if has_lazy(args, kwargs) else None
    columns = dict(entry.columns)
    if lazy is not None:
        columns["args"], columns["kwargs"] = storable_arguments(args, kwargs)
    zone = app_timezone(app)
    definition = define(entry.name, entry.task, entry.schedule, columns, settings, zone, manager_of(app))
    if definition.kind == "human":
        if lazy is not None:
            raise InvalidPeriodicTask("a BeatLazyFunc is set, but kind is 'human': nothing is sent, give plain values")
        return Definition({**definition.values, "timezone": definition.timezone or zone}), None
    # Code declares the zone of its app too, so that a change of the setting is a change of the code.
    definition = Definition({**definition.values, "timezone": definition.timezone or zone})
    check_call(definition, app)
    deadline = app.conf.beat_cron_starting_deadline
    if deadline is not None and "catchup_window" not in columns and _is_cron(definition):
        definition = Definition({**definition.values, "catchup_window": timedelta(seconds=deadline)})
    return definition, lazy


def _is_cron(definition: Definition) -> bool:
    if definition.schedule is None:
        return False
    parsed = parse(definition.schedule, definition.timezone, name=definition.name)
    return parsed.kind_info.celery_class == "crontab"
