"""Imports definitions from a file: shows first what they would change, then writes all of it or nothing.

Only rows of one owner (`managed_by`) are changed. A row of another owner is refused, unless `take_over` is set.
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
from celery_pgbeat.declare import define
from celery_pgbeat.declare.columns import READERS, read_name
from celery_pgbeat.declare.definition import record_of
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.postgres.admin_queries import PAGE, AdminQueries
from celery_pgbeat.postgres.spans import as_written
from celery_pgbeat.safe_text import type_of
from celery_pgbeat.settings import Settings

CODE = "code:"  # such an owner's rows are written by the beats, from the app's code
IN_MEMORY = 16 * 1024 * 1024  # bytes of records; more of them wait in a file
MOST_SHOWN = 20  # faults of a file that are named; the others are counted

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is not as the file says: `added`, `changed` or `removed`, with what changes in which column."""

    name: str
    kind: str
    columns: dict[str, Change] = field(default_factory=dict)


class Importer:
    """One file against one database; to be used in a `with` statement.

    Args:
        operators: of the database.
        settings: for the allowed tasks and the shortest interval.
        timezone: the zone in which definitions without one are judged; the app's.
        managed_by: the owner whose definitions are imported; None if all lines have the same owner.
        take_over: change rows of other owners too; they become this owner's.
        prune: remove the owner's rows that are not in the file.

    Attributes:
        owner: the owner whose rows are changed; if it was not given, known after the first line.
        equal: how many rows are as the file says.
        left_out: how many lines belong to other owners.
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
        self._refuse_code(managed_by)
        self.owner = managed_by
        self.equal = 0
        self.left_out = 0
        self._operators = operators
        self._settings = settings
        self._timezone = timezone
        self._chosen = managed_by is not None
        self._take_over = take_over
        self._prune = prune
        self._lines: dict[str, int] = {}  # by name
        self._faults: list[tuple[int, str]] = []  # with the numbers of the lines
        self._records = SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf-8")  # noqa: SIM115  closed by __exit__
        self._removed: list[str] = []

    def __enter__(self) -> Importer:
        return self

    def __exit__(self, *_: object) -> None:
        self._records.close()

    def compare(self, lines: Iterable[str], each: Callable[[int], None] = lambda _: None) -> Iterator[Difference]:
        """Compare the lines of a file with the table, and iterate over what differs; writes nothing.

        `each` is called with the number of lines read so far.

        Raises:
            InvalidPeriodicTask: something in the file is wrong or another owner's; names all of it, with its lines.
        """
        for batch in _batches(self._read(lines), PAGE):
            yield from self._compare(dict(batch))
            each(batch[-1][0])
        self._refuse_if_wrong()
        if self._prune:
            if not self._lines:
                raise InvalidPeriodicTask(
                    f"the file defines nothing of {self.owner or 'any owner'}: to remove all rows, remove them by name"
                )
            for name in self._operators.names_of_owner(str(self.owner)):
                if name not in self._lines:
                    self._removed.append(name)
                    yield Difference(name, "removed")

    def apply(self, each: Callable[[int], None] = lambda _: None) -> None:
        """Write what `compare` has found, in one transaction.

        `each` is called with the number of rows written so far.

        Raises:
            InvalidPeriodicTask: the database refuses a row, or it has become another owner's since; nothing is written.
            DatabaseUnavailable: Postgres is out of reach; nothing is written.
        """
        done = 0
        self._records.seek(0)
        with self._operators.transaction() as connection:
            for texts in _batches(self._records, PAGE):
                names = [json.loads(text)["name"] for text in texts]
                self._refuse_others(self._operators.lock_rows(names, connection))
                self._operators.schedule(texts, connection)
                each(done := done + len(texts))
            for removed in _batches(self._removed, PAGE):
                self._operators.remove(removed, str(self.owner), connection)
                each(done := done + len(removed))

    def _read(self, lines: Iterable[str]) -> Iterator[tuple[int, Record]]:
        """Iterate over the definitions of this owner, with the numbers of their lines."""
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
                continue
            if self._is_of_owner(given, number):
                yield number, given

    def _is_of_owner(self, given: Record, number: int) -> bool:
        owner = given.pop("managed_by", None) or self.owner or "api"
        if not isinstance(owner, str):
            self._faults.append((number, f"managed_by is {owner!r}, not text"))
            return False
        if self.owner is None:
            self._refuse_code(owner)
            self.owner = owner
        if owner == self.owner:
            return True
        if not self._chosen:
            raise InvalidPeriodicTask(
                f"line {number} is managed by {owner!r}, those before by {self.owner!r}: choose one (managed_by)"
            )
        self.left_out += 1
        return False

    def _compare(self, batch: dict[int, Record]) -> Iterator[Difference]:
        names = [given["name"] for given in batch.values() if _is_name(given.get("name"))]
        stored = {name: record_of(row) for name, row in self._operators.definitions_of(names).items()}
        for number, given in batch.items():
            name = given.get("name")
            try:
                new = self._defined(given, stored.get(str(name), EMPTY)["timezone"])
            except (InvalidPeriodicTask, InvalidSchedule) as error:
                self._faults.append((number, f"{name!r}: {error}"))
                continue
            if (first := self._lines.setdefault(new["name"], number)) != number:
                self._faults.append((number, f"{name!r} has been on line {first} already"))
                continue
            yield from self._difference(number, stored.get(new["name"]), new)

    def _difference(self, number: int, old: Record | None, new: Record) -> Iterator[Difference]:
        changes = differences(old or EMPTY, new)
        if not changes:
            self.equal += 1
            return
        if old is not None and old["managed_by"] != self.owner and not self._take_over:
            self._faults.append((number, _of_another(new["name"], old["managed_by"])))
            return
        self._records.write(json.dumps(as_written(new)) + "\n")
        if old is None:
            changes.pop("name")
        yield Difference(new["name"], "added" if old is None else "changed", changes)

    def _defined(self, given: Record, stored_timezone: str | None) -> Record:
        """Check a definition and return it as a record; without a zone of its own it keeps the one that is stored."""
        columns = {column: value for column, value in given.items() if value is not None or column not in READERS}
        name, task, schedule = (columns.pop(column, None) for column in ("name", "task", "schedule"))
        zone = columns.get("timezone") or stored_timezone
        for column in INSTANTS & columns.keys():
            columns[column] = _instant(column, columns[column])
        if schedule is not None and not isinstance(schedule, str):
            raise InvalidPeriodicTask(f"schedule is {schedule!r}, not text")
        definition = define(
            name, task, schedule, columns, self._settings, zone or self._timezone, managed_by=str(self.owner)
        )
        # What has no zone gets its app's, from the first beat that plans it.
        return {**definition.record(), "timezone": zone}

    def _refuse_if_wrong(self) -> None:
        if self._faults:
            _refuse([f"line {number}: {fault}" for number, fault in sorted(self._faults)])

    def _refuse_others(self, owners: dict[str, str]) -> None:
        others = [_of_another(name, owner) for name, owner in owners.items() if owner != self.owner]
        if others and not self._take_over:
            _refuse(others)

    @staticmethod
    def _refuse_code(owner: str | None) -> None:
        if owner is not None and owner.startswith(CODE):
            raise InvalidPeriodicTask(
                f"{owner!r} manages rows from the code of that app, and its beats write them: "
                "there is nothing to import"
            )


def _refuse(faults: list[str]) -> NoReturn:
    more = [f"and {len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
    raise InvalidPeriodicTask("\n  ".join(["nothing is imported:", *faults[:MOST_SHOWN], *more]))


def _of_another(name: str, owner: str) -> str:
    return f"{name!r} is managed by {owner!r}: leave it out, or take it over (take_over)"


def _is_name(name: Any) -> bool:
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
