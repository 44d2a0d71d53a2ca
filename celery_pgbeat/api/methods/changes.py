"""Who changed what, and putting a definition back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any

from celery_pgbeat.api.changes import Change, read_change, read_json
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.api.rows import read_row
from celery_pgbeat.choices import ChangeKind
from celery_pgbeat.columns import DECLARED, PeriodicTask
from celery_pgbeat.declare.texts import printable, read_short_text
from celery_pgbeat.postgres.api_queries import Person
from celery_pgbeat.texts.redaction import ARGUMENTS

if TYPE_CHECKING:
    from typing_extensions import Self

LONGEST_PERSON = 200  # characters
NEWEST = 2**63 - 1  # an id that no change reaches


class ChangeMethods(Connected):
    """What `PgBeat` does with the table of changes."""

    def as_person(self, who: str, reason: str | None = None) -> Self:
        """Return this object as it acts for a person: `changes` records what it does under that name.

        It shares the database with the one that it was made of, which stays as it is.

        Args:
            who: the person, up to 200 characters, such as an e-mail address. It is not checked: the role of the
                database is recorded too.
            reason: why, for each change that has no reason of its own; free text.

        Raises:
            InvalidPeriodicTask: one of them is no text, too long, or has control characters.

        Example:
            >>> beat.as_person("ann@example.com").pause("nightly").paused_by
            'ann@example.com'
        """
        person = read_person(who, reason)
        acting = copy(self)
        acting._person = person
        return acting

    def changes(
        self,
        name: str | None = None,
        *,
        kind: ChangeKind | None = None,
        limit: int = 100,
        before: int | None = None,
        connection: Any = None,
    ) -> Sequence[Change]:
        """Read who changed what, the latest first, a page at a time.

        Args:
            name: only of this periodic task, group or named window; it need not exist any more.
            kind: only of a `periodic_task`, a `group` or a `window`.
            limit: the most to return.
            before: only changes with a lower id than this: that of the last one of the page before.
            connection: read in this transaction.

        Example:
            >>> [(change.action, change.who) for change in beat.as_person("ann").changes("unknown")]
            []
        """
        given = {"name": name, "kind": kind, "limit": limit, "before": NEWEST if before is None else before}
        return [read_change(row) for row in self._queries.run("changes", connection, **given)]

    def revert(
        self, name: str, revision: int | None = None, *, change: int | None = None, connection: Any = None
    ) -> PeriodicTask:
        """Put the definition of a row back to what it was at a revision, or before a change; return the row.

        It is checked as any definition, and `changes` records it. A removed row is made again, with its pause.
        Of a row that is there the pause, the next run and the jobs stay. A sensitive row stays sensitive, and keeps its
        present arguments if the earlier ones are not recorded.

        Args:
            name: of the row, as it is now.
            revision: as of this revision of the row; of one that was removed, of the last row of that name.
            change: as it was before this change, an id of `changes`. One of the two must be given.
            connection: join this transaction.

        Raises:
            UnknownPeriodicTask: no row has this name, and none of this name was removed.
            InvalidPeriodicTask: the changes do not go back so far, or the definition would be refused today.
            InvalidSchedule: likewise, for its times.

        Example:
            >>> before = beat.get("nightly")
            >>> beat.update("nightly", queue="reports").queue
            'reports'
            >>> beat.revert("nightly", before.revision).queue == before.queue
            True
        """
        self.definition_before(name, revision, change=change, connection=connection)
        (row,) = self._queries.run("revert", connection, name=name, revision=revision, change=change)
        return read_row(PeriodicTask, row)

    def definition_before(
        self, name: str, revision: int | None = None, *, change: int | None = None, connection: Any = None
    ) -> Mapping[str, Any]:
        """Return what `revert` would put back, as a record of JSON values, and change nothing.

        The arguments and the errors are those of `revert`.

        Example:
            >>> beat.definition_before("nightly", beat.get("nightly").revision)["task"]
            'shop.report'
        """
        given = {"name": name, "revision": revision, "change": change}
        (row,) = self._queries.run("definition_before", connection, **given)
        found = read_json(row["definition"])
        hidden = ARGUMENTS & set(row["hidden"] or ())
        columns = {
            column: datetime.fromisoformat(value) if DECLARED[column].type is datetime else value
            for column, value in found.items()
            if column in DECLARED
            and column not in ("name", "task", "schedule", "managed_by", *hidden)
            and value is not None
        }
        definition = self._define(found["name"], found.get("task"), found.get("schedule"), columns, found["managed_by"])
        return definition.record()


def read_person(who: Any, reason: Any = None) -> Person:
    """Return the person that the caller has named, and why.

    Raises:
        InvalidPeriodicTask: one of them is no text, too long, or has control characters.
    """
    name = printable("who", read_short_text("who", who, LONGEST_PERSON))
    return Person(name, None if reason is None else printable("reason", read_short_text("reason", reason)))
