"""The statements that sync the code of one app: one method for each, with the same name.

Every statement that writes is fenced: it writes only while this very declaration is in force, and locks the row of
`declaration_in_force` until it has committed. So of two versions of the code one writes at a time, and never the older
one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery_pgbeat.postgres.api_queries import ApiQueries, Record, Row
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.durations import as_written


@dataclass(frozen=True, slots=True)
class DeclarationStatus:
    """The status of a declaration: in force since this `revision`, `overruled` by a later one, or neither as yet."""

    revision: int | None
    overruled: bool


class CodeSyncQueries:
    """The statements of one app's code.

    Args:
        schema: where the tables are.
        database: where the schema is.
        manager: the app: the `managed_by` of the rows.
    """

    def __init__(self, schema: str, database: Database, manager: str) -> None:
        self._queries = ApiQueries(schema, lambda: database)
        self._manager = manager

    def announce_declaration(self, declared_hash: str, dead_after: timedelta, starting: bool) -> DeclarationStatus:
        """Record that a beat with this declaration is alive; put it in force unless a later one has a living beat."""
        (row,) = self._run(
            "announce_declaration", declared_hash, dead_after=dead_after.total_seconds(), starting=starting
        )
        return DeclarationStatus(row["revision"], row["overruled"])

    def insert_declared(
        self, declared_hash: str, definitions: Iterable[Record], running_first: Collection[str] = ()
    ) -> list[str]:
        """Insert what code declares and the table does not have; return the names of the new rows."""
        rows = self._run(
            "insert_declared", declared_hash, definitions=_json(definitions), running_first=list(running_first)
        )
        return [row["name"] for row in rows]

    def update_declared(
        self, declared_hash: str, definitions: Iterable[Record], defaults: Record
    ) -> dict[str, list[str]]:
        """Write the columns that code has changed; return them by the name of the row."""
        rows = self._run(
            "update_declared", declared_hash, definitions=_json(definitions), defaults=json.dumps(dict(defaults))
        )
        return {row["name"]: row["changed"] for row in rows}

    def resume_declared(self, declared_hash: str, names: Collection[str]) -> list[str]:
        """Resume the rows that code declares again; return their names."""
        return [row["name"] for row in self._run("resume_declared", declared_hash, names=list(names))]

    def pause_undeclared(self, declared_hash: str, names: Collection[str], reason: str) -> list[str]:
        """Pause the rows that code no longer declares; `names` are those that it does."""
        return [row["name"] for row in self._run("pause_undeclared", declared_hash, names=list(names), reason=reason)]

    def record_refused(self, declared_hash: str, refused: Mapping[str, str]) -> None:
        """Record what code declares and its beats refuse, with the reasons, in place of what was recorded before."""
        self._run("record_refused", declared_hash, names=list(refused), reasons=list(refused.values()))

    def find_differences(self, definitions: Iterable[Record], names: Collection[str]) -> dict[str, str]:
        """Return, with their managers, the rows that are not as code declares them."""
        rows = self._queries.run(
            "find_differences", manager=self._manager, definitions=_json(definitions), names=list(names)
        )
        return {row["name"]: row["managed_by"] for row in rows}

    def declared(self) -> dict[str, Record]:
        """Return what code last declared of each row that it has not withdrawn since."""
        return {row["name"]: row["declared"] for row in self._queries.run("declared", manager=self._manager)}

    def _run(self, name: str, declared_hash: str, **parameters: Any) -> list[Row]:
        return self._queries.run(name, manager=self._manager, hash=declared_hash, **parameters)


def _json(definitions: Iterable[Record]) -> str:
    return json.dumps([as_written(definition) for definition in definitions])
