"""Imports definitions from a file: shows first what they would change, then writes all of it or nothing.

Each line names the manager of its row (`managed_by`). The row of another manager is refused, unless `take_over` is set.
Rows that code declares are left out: the beats of that app write them. Groups and named windows have no manager.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Any, NoReturn, TypeVar

from celery_pgbeat.api.exchange import EMPTY, INSTANTS, Change, Record, differences
from celery_pgbeat.api.shared_lines import Shared, kind_of, read_shared, shared_of
from celery_pgbeat.declare import define
from celery_pgbeat.declare.columns import READERS, read_name
from celery_pgbeat.declare.definition import record_of
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.postgres.admin_queries import PAGE, AdminQueries
from celery_pgbeat.postgres.durations import as_written
from celery_pgbeat.settings import Settings
from celery_pgbeat.texts.safe_text import type_of

CODE = "code:"  # such a manager's rows are written by the beats, from the app's code
MANAGER = "api"  # of a line that names none
IN_MEMORY = 16 * 1024 * 1024  # bytes of records; more of them wait in a file
TASK = "periodic task"
MOST_SHOWN = 20  # faults of a file that are named; the others are counted

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is not as the file says: `added`, `changed` or `removed`, with what changes in which column.

    Attributes:
        what: `periodic task`, `group` or `window`.
    """

    name: str
    kind: str
    columns: dict[str, Change] = field(default_factory=dict)
    what: str = TASK


class Importer:
    """One file against one database; to be used in a `with` statement.

    Args:
        operators: of the database.
        settings: for the allowed tasks and the shortest interval.
        timezone: the zone in which definitions without one are judged; the app's.
        managed_by: only the lines and rows of this manager, which lines without a manager get; None for all lines. A
            line without a manager is then managed by `api`.
        take_over: change rows of other managers too; each gets the manager that its line names.
        prune: of each manager that the file names, remove the rows that are not in the file.

    Attributes:
        equal: how many rows are as the file says.
        left_out: how many lines belong to another manager than the chosen one, or to none.
        declared_by_code: how many lines are of rows that code declares.
    """

    def __init__(
        self,
        operators: AdminQueries,
        settings: Settings,
        timezone: str = "UTC",
        managed_by: str | None = None,
        *,
        take_over: bool = False,
        prune: bool = False,
    ) -> None:
        if managed_by is not None and managed_by.startswith(CODE):
            raise InvalidPeriodicTask(
                f"{managed_by!r} manages rows from the code of that app, and its beats write them: "
                "there is nothing to import"
            )
        self.equal = 0
        self.left_out = 0
        self.declared_by_code = 0
        self._operators = operators
        self._settings = settings
        self._timezone = timezone
        self._chosen = managed_by
        self._take_over = take_over
        self._prune = prune
        self._lines: dict[tuple[str, str], int] = {}  # by what a line defines and its name
        self._managers: dict[str, None] = {}  # of the lines, in their order
        self._faults: list[tuple[int, str]] = []  # with the numbers of the lines
        self._records = SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8")  # noqa: SIM115  closed by __exit__
        self._shared: list[Shared] = []
        self._removed: dict[str, list[str]] = {}  # names by manager

    def __enter__(self) -> Importer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget what was compared."""
        self._records.close()

    def compare(self, lines: Iterable[str], each: Callable[[int], None] = lambda _: None) -> Iterator[Difference]:
        """Compare the lines of a file with the table, and iterate over what differs; writes nothing.

        `each` is called with the number of lines read so far.

        Raises:
            InvalidPeriodicTask: something in the file is wrong or another manager's; names all of it, with its lines.
        """
        for batch in _batches(self._read(lines), PAGE):
            yield from self._compare(dict(batch))
            each(batch[-1][0])
        self._refuse_if_wrong()
        yield from self._compare_shared()
        if self._prune:
            yield from self._compare_rest()

    def apply(self, each: Callable[[int], None] = lambda _: None, also: Callable[[Any], None] = lambda _: None) -> None:
        """Write what `compare` has found, in one transaction.

        `each` is called with the number of periodic tasks written so far, `also` with the connection at the end.

        Raises:
            InvalidPeriodicTask: the database refuses a row, or it has become another manager's since; nothing is
            written.
            DatabaseUnavailable: Postgres is out of reach; nothing is written.
        """
        done = 0
        self._records.seek(0)
        with self._operators.transaction() as connection:
            if groups := self._shared_json("group"):
                self._operators.write_groups(groups, connection)
            if windows := self._shared_json("window"):
                self._operators.write_windows(windows, connection)
            self._operators.check_after(True, connection)
            for texts in _batches(self._records, PAGE):
                managers = {record["name"]: record["managed_by"] for record in map(json.loads, texts)}
                self._refuse_others(managers, self._operators.lock_rows(list(managers), connection))
                self._operators.schedule(texts, managers if self._take_over else (), connection)
                each(done := done + len(texts))
            self._operators.check_after(False, connection)
            for manager, names in self._removed.items():
                for removed in _batches(names, PAGE):
                    self._operators.remove(removed, manager, connection)
                    each(done := done + len(removed))
            if groups:
                self._operators.order_groups(groups, connection)
            also(connection)

    def _read(self, lines: Iterable[str]) -> Iterator[tuple[int, Record]]:
        """Iterate over the definitions of periodic tasks, with the numbers of their lines; keep groups and windows."""
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                given = json.loads(line)
            except (ValueError, RecursionError) as error:
                self._faults.append((number, f"{error}; each line is a definition in JSON, as of `export`"))
                continue
            if not isinstance(given, dict):
                self._faults.append((number, f"{type_of(given)}, not an object with the columns"))
            elif kind := kind_of(given):
                self._read_shared(number, kind, given)
            elif self._is_wanted(number, given):
                yield number, given

    def _read_shared(self, number: int, kind: str, given: Record) -> None:
        if self._chosen is not None:
            self.left_out += 1
            return
        try:
            shared = read_shared(kind, given, self._timezone)
        except (InvalidPeriodicTask, InvalidSchedule) as error:
            self._faults.append((number, f"{kind} {given[kind]!r}: {error}"))
            return
        if self._is_first(number, kind, shared.name):
            self._shared.append(shared)

    def _is_wanted(self, number: int, given: Record) -> bool:
        """Fill in the manager of a line, and return whether its row is to be written."""
        manager = given.get("managed_by") or self._chosen or MANAGER
        if not isinstance(manager, str):
            self._faults.append((number, f"managed_by is {manager!r}, not text"))
        elif self._chosen not in (None, manager):
            self.left_out += 1
        elif manager.startswith(CODE):
            self.declared_by_code += 1
        else:
            given["managed_by"] = manager
            self._managers[manager] = None
            return True
        return False

    def _is_first(self, number: int, what: str, name: str) -> bool:
        first = self._lines.setdefault((what, name), number)
        if first != number:
            self._faults.append((number, f"{name!r} has been on line {first} already"))
        return first == number

    def _compare(self, batch: dict[int, Record]) -> Iterator[Difference]:
        names = [given["name"] for given in batch.values() if is_name(given.get("name"))]
        stored = {name: record_of(row) for name, row in self._operators.definitions_of(names).items()}
        for number, given in batch.items():
            name = given.get("name")
            try:
                new = self._defined(given, stored.get(str(name), EMPTY)["timezone"])
            except (InvalidPeriodicTask, InvalidSchedule) as error:
                self._faults.append((number, f"{name!r}: {error}"))
                continue
            if self._is_first(number, TASK, new["name"]):
                yield from self._difference(number, stored.get(new["name"]), new)

    def _compare_shared(self) -> Iterator[Difference]:
        """Compare groups and windows, and keep those that differ to be written."""
        if not self._shared:
            return
        stored = {(row.kind, row.name): row.columns for row in map(shared_of, self._operators.shared_rows())}
        differ = []
        for shared in self._shared:
            old = stored.get((shared.kind, shared.name))
            changes = {
                column: ((old or {}).get(column), value)
                for column, value in shared.columns.items()
                if value != (old or {}).get(column)
            }
            if not changes:
                self.equal += 1
                continue
            differ.append(shared)
            yield Difference(shared.name, "changed" if old else "added", changes, shared.kind)
        self._shared = differ

    def _compare_rest(self) -> Iterator[Difference]:
        """Of each manager that the file names, find the rows that are not in the file."""
        if not self._managers:
            raise InvalidPeriodicTask(
                f"the file defines nothing of {self._chosen or 'any manager'}: to remove all rows, remove them by name"
            )
        for manager in self._managers:
            names = self._operators.names_managed_by(manager)
            self._removed[manager] = [name for name in names if (TASK, name) not in self._lines]
            yield from (Difference(name, "removed") for name in self._removed[manager])

    def _difference(self, number: int, old: Record | None, new: Record) -> Iterator[Difference]:
        changes = differences(old or EMPTY, new)
        if not changes:
            self.equal += 1
            return
        if old is not None and old["managed_by"] != new["managed_by"] and not self._take_over:
            self._faults.append((number, _of_another(new["name"], old["managed_by"])))
            return
        self._records.write(json.dumps(as_written(new)) + "\n")
        if old is None:
            changes.pop("name")
        yield Difference(new["name"], "added" if old is None else "changed", changes)

    def _defined(self, given: Record, stored_timezone: str | None) -> Record:
        """Check a definition and return it as a record; without a zone of its own it keeps the one that is stored."""
        columns = {column: value for column, value in given.items() if value is not None or column not in READERS}
        name, task, schedule, manager = (
            columns.pop(column, None) for column in ("name", "task", "schedule", "managed_by")
        )
        zone = columns.get("timezone") or stored_timezone
        for column in INSTANTS & columns.keys():
            columns[column] = _instant(column, columns[column])
        if schedule is not None and not isinstance(schedule, str):
            raise InvalidPeriodicTask(f"schedule is {schedule!r}, not text")
        definition = define(
            name, task, schedule, columns, self._settings, zone or self._timezone, managed_by=str(manager)
        )
        # What has no zone gets its app's, from the first beat that plans it.
        return {**definition.record(), "timezone": zone}

    def _shared_json(self, kind: str) -> str | None:
        rows = [{"name": shared.name, **shared.columns} for shared in self._shared if shared.kind == kind]
        return json.dumps(rows) if rows else None

    def _refuse_if_wrong(self) -> None:
        if self._faults:
            _refuse([f"line {number}: {fault}" for number, fault in sorted(self._faults)])

    def _refuse_others(self, wanted: dict[str, str], managers: dict[str, str]) -> None:
        others = [_of_another(name, manager) for name, manager in managers.items() if manager != wanted[name]]
        if others and not self._take_over:
            _refuse(others)


def _refuse(faults: list[str]) -> NoReturn:
    more = [f"and {len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
    raise InvalidPeriodicTask("\n  ".join(["nothing is imported:", *faults[:MOST_SHOWN], *more]))


def _of_another(name: str, manager: str) -> str:
    return f"{name!r} is managed by {manager!r}: leave it out, or take it over (take_over)"


def is_name(name: Any) -> bool:
    """Return whether a value can be the name of a row, and so may be looked for."""
    try:
        read_name(name)
    except InvalidPeriodicTask:
        return False
    return True


def _instant(column: str, value: Any) -> datetime:
    try:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        raise InvalidPeriodicTask(f"{column} is {value!r}, not a date-time such as 2026-12-24T18:00:00Z") from None


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
