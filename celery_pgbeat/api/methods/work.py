"""Tasks for people: list, pick up, give back and finish them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args
from uuid import UUID

from celery_pgbeat.api.ids import read_job_id
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.api.rows import Work, read_row
from celery_pgbeat.choices import WorkOutcome
from celery_pgbeat.declare.columns import read_choice, read_group_name, read_targets
from celery_pgbeat.errors import InvalidPeriodicTask

MOST_ROLES = 1_000  # of one owner
MOST_LISTED = 10_000  # tasks in one list


class WorkMethods(Connected):
    """What `PgBeat` does with tasks for people (`kind = 'human'`)."""

    def my_work(
        self, owner: str, targets: Sequence[str] = (), limit: int = 100, *, connection: Any = None
    ) -> Sequence[Work]:
        """List the tasks for people that the owner has, then those that the owner may pick up, what is due first.

        Args:
            owner: a user, by the name that your application uses.
            targets: the roles of that user, by their names.
            limit: how many to return at most, up to 10,000.
            connection: read in this transaction.

        Raises:
            InvalidPeriodicTask: an argument is wrong; names it.

        Example:
            >>> beat.my_work("ann", ["finance"])  # nothing to do
            []
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_LISTED:
            raise InvalidPeriodicTask(f"limit is {limit!r}, not 1 to {MOST_LISTED}")
        person = {"owner": read_group_name("owner", owner), "targets": _roles(targets)}
        rows = self._queries.run("my_work", connection, **person, most=limit)
        return [read_row(Work, row) for row in rows]

    def pick_up(self, id: UUID | str, owner: str, targets: Sequence[str] = (), *, connection: Any = None) -> str:
        """Pick up a task for people: it is `running`, and with this owner. Return the name of its row.

        The person who has it may pick it up again.

        Args:
            id: of the job.
            owner: a user, by the name that your application uses.
            targets: the roles of that user, for a task whose target is a role.
            connection: join this transaction; until it ends, other callers get WorkTaken.

        Raises:
            UnknownJob: there is no such job.
            WorkTaken: another person has it; names the owner.
            WorkForOthers: it is for others.
            WorkNotOpen: it is over, waits for its turn, or is no task for people.
            InvalidPeriodicTask: an argument is wrong; names it.

        Example:
            >>> [beat.pick_up(work.id, "ann") for work in beat.my_work("ann")]  # nothing to do
            []
        """
        person = {"owner": read_group_name("owner", owner), "targets": _roles(targets)}
        return self._name_of("pick_up", connection, id=str(read_job_id(id)), **person)

    def release(self, id: UUID | str, owner: str | None = None, *, connection: Any = None) -> str:
        """Give a task for people back, so that others can pick it up. Return the name of its row.

        Args:
            id: of the job.
            owner: only if this person has it; None for any.
            connection: join this transaction.

        Raises:
            UnknownJob: there is no such job.
            WorkTaken: another person has it; names the owner.
            WorkNotOpen: no person has it.

        Example:
            >>> [beat.release(work.id) for work in beat.my_work("ann") if work.state == "running"]
            []
        """
        return self._name_of("release", connection, id=str(read_job_id(id)), owner=_owner(owner))

    def finish(
        self,
        id: UUID | str,
        outcome: WorkOutcome = "succeeded",
        note: str | None = None,
        *,
        owner: str | None = None,
        connection: Any = None,
    ) -> str:
        """End a task for people that a person has. Return the name of its row.

        Args:
            id: of the job.
            outcome: `succeeded` or `failed`.
            note: a note about the result, up to 1,000 characters; recorded in the job's `note`, and in the `error` of a
                failed one.
            owner: only if this person has it; None for any.
            connection: join this transaction.

        Raises:
            UnknownJob: there is no such job.
            WorkTaken: another person has it; names the owner.
            WorkNotOpen: no person has it.
            InvalidPeriodicTask: the outcome is another word, or the note is longer.

        Example:
            >>> [beat.finish(work.id, "succeeded", "signed") for work in beat.my_work("ann") if work.state == "running"]
            []
        """
        said = {"outcome": read_choice("outcome", outcome, get_args(WorkOutcome)), "note": note}
        return self._name_of("finish_work", connection, id=str(read_job_id(id)), owner=_owner(owner), **said)

    def _name_of(self, statement: str, connection: Any, **arguments: Any) -> str:
        (row,) = self._queries.run(statement, connection, **arguments)
        return str(row["periodic_task"])


def _owner(owner: str | None) -> str | None:
    return None if owner is None else read_group_name("owner", owner)


def _roles(targets: Sequence[str]) -> list[str]:
    return list(read_targets("targets", targets, MOST_ROLES)) if targets or isinstance(targets, (str, bytes)) else []
