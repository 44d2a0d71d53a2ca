"""Takes the entries of a source over: compares them with our table, then writes all of them, or nothing.

A row's state is carried over once, when the row is new: that it is switched off, and the last run from which its
interval is counted. So a second import of an unchanged source changes nothing, whatever ran meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from celery_pgbeat.api.exchange import Change, line_of
from celery_pgbeat.api.importing import CODE, MANAGER, Difference, Importer, is_name
from celery_pgbeat.declare import Definition, define
from celery_pgbeat.declare.columns import read_instant
from celery_pgbeat.declare.definition import record_of
from celery_pgbeat.moving.answers import Answer, Refused, Taken, answered
from celery_pgbeat.moving.kind import Kind, Request
from celery_pgbeat.postgres.admin_queries import PAGE, AdminQueries
from celery_pgbeat.settings import Settings

AS_THERE = "allow"  # the other schedulers do not look whether the last job has ended


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of the source in the report.

    Attributes:
        answer: what became of it.
        kind: `added`, `changed` or `equal`, compared with our table; None if it is refused.
        columns: what differs from our table, by column.
    """

    answer: Answer
    kind: str | None = None
    columns: Mapping[str, Change] = field(default_factory=dict)


class Move:
    """One source against one database; to be used in a `with` statement.

    Args:
        kind: of the source.
        request: how to read it.
        operators: of our database.
        settings: for the allowed tasks and the shortest interval.
        timezone: the app's, for entries without one; None if it is not known, then it is that of the beats' app.
        overlap: of the rows whose entry has no rule for it.
        managed_by: the manager of the rows.
        take_over: change rows of other managers too.
    """

    def __init__(
        self,
        kind: Kind,
        request: Request,
        operators: AdminQueries,
        settings: Settings,
        timezone: str | None = None,
        *,
        overlap: str = AS_THERE,
        managed_by: str | None = None,
        take_over: bool = False,
    ) -> None:
        self._kind = kind
        self._request = request
        self._operators = operators
        self._settings = settings
        self._timezone = timezone
        self._overlap = overlap
        self._manager = managed_by or MANAGER
        self._take_over = take_over
        self._importer = Importer(operators, settings, timezone or "UTC", managed_by, take_over=take_over)
        self._keys: list[Any] = []  # of the entries that are taken and switched on
        self._paused: list[str] = []  # new rows whose entry is switched off
        self._last_runs: dict[str, datetime] = {}  # of the other new rows, there

    def __enter__(self) -> Move:
        return self

    def __exit__(self, *_: object) -> None:
        self._importer.close()

    def compare(self) -> list[Row]:
        """Read the source, and return what becomes of each entry, in its order; writes nothing.

        Raises:
            InvalidSource: the source cannot be read.
        """
        answers = list(self._once_each(self._kind.read(self._request)))
        stored = self._stored([answer.name for answer in answers if is_name(answer.name)])
        settled, lines = [], []
        for given in answers:
            answer, definition = self._defined(given, stored.get(given.name))
            settled.append(answer)
            lines += [line_of(definition)] if definition else []
        found = {difference.name: difference for difference in self._importer.compare(lines)}
        return [self._row(answer, found.get(answer.name)) for answer in settled]

    def apply(
        self, *, cut_over: bool = False, make_up: bool = False, each: Callable[[int], None] = lambda _: None
    ) -> None:
        """Write what `compare` has found, in one transaction.

        Args:
            cut_over: switch the entries that are taken off in the source, in the same transaction.
            make_up: a new row counts from its last run there: what was due since is decided by `catchup`.
            each: is called with the number of rows written so far.

        Raises:
            InvalidPeriodicTask: the database refuses a row; nothing is written.
            DatabaseUnavailable: Postgres is out of reach; nothing is written.
        """
        self._importer.apply(each, also=lambda connection: self._complete(connection, cut_over, make_up))

    def _complete(self, connection: Any, cut_over: bool, make_up: bool) -> None:
        if self._paused:
            reason = f"it was switched off in {self._kind.name}"
            self._operators.pause_many(self._paused, reason, connection)
        if make_up and self._last_runs:
            self._operators.count_from(self._last_runs, connection)
        if cut_over and self._kind.switch_off is not None and self._keys:
            self._kind.switch_off(connection, self._keys)

    def _once_each(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        """Refuse what the app's code declares, and a name that comes again."""
        app, names = self._request.app, set()
        of_code = set(app.conf.beat_schedule or ()) if app is not None and self._kind.name != "beat-schedule" else set()
        for answer in answers:
            if answer.name in names:
                yield Refused(answer.name, "another entry has this name")
            elif answer.name in of_code:
                yield Refused(answer.name, "the app's code declares it, and its beats write this row")
            else:
                yield answer
            names.add(answer.name)

    def _defined(self, answer: Answer, stored: Mapping[str, Any] | None) -> tuple[Answer, Mapping[str, Any] | None]:
        """Return the answer with the columns of its row; a refusal, without any, if it cannot have one."""
        if isinstance(answer, Refused):
            return answer, None
        manager = self._manager if stored is None else stored["managed_by"]
        if manager != self._manager and not self._take_over:
            return Refused(answer.name, _of_another(manager)), None
        row: dict[str, Any] = {}

        def checked() -> Answer:
            row.update(self._row_of(answer, stored))
            return answer

        return answered(answer.name, checked), row or None

    def _row_of(self, answer: Taken, stored: Mapping[str, Any] | None) -> dict[str, Any]:
        columns = {"overlap": self._overlap, **answer.columns}
        if answer.last_run_at is not None:
            read_instant("last_run_at", answer.last_run_at)
        definition = define(
            answer.name, answer.task, answer.schedule, columns, self._settings, self._timezone, self._manager
        )
        zone = definition.timezone or self._timezone
        return {**definition.values, "timezone": zone, "anchor": _anchor(definition, stored)}

    def _stored(self, names: list[str]) -> dict[str, dict[str, Any]]:
        pages = (names[at : at + PAGE] for at in range(0, len(names), PAGE))
        found = [self._operators.definitions_of(page) for page in pages]
        return {name: record_of(row) for page in found for name, row in page.items()}

    def _row(self, answer: Answer, difference: Difference | None) -> Row:
        if isinstance(answer, Refused):
            return Row(answer)
        is_new = difference is not None and difference.kind == "added"
        if answer.paused:
            self._paused += [answer.name] if is_new else []
        elif answer.key is not None:
            self._keys.append(answer.key)
        if is_new and not answer.paused and answer.last_run_at is not None:
            self._last_runs[answer.name] = answer.last_run_at
        return Row(answer, "equal") if difference is None else Row(answer, difference.kind, difference.columns)


def _anchor(definition: Definition, stored: Mapping[str, Any] | None) -> datetime | None:
    """Return from where an interval is counted: a row that is there already keeps that."""
    if stored is None or stored["schedule"] != definition.schedule:
        anchor: datetime | None = definition.anchor
        return anchor
    return None if stored["anchor"] is None else datetime.fromisoformat(stored["anchor"])


def _of_another(manager: str) -> str:
    if manager.startswith(CODE):
        return f"its row is managed by {manager!r}, and the beats of that app write it; --take-over makes it yours"
    return f"its row is managed by {manager!r}; --take-over changes it"
