"""The groups of periodic tasks: limited, paused and resumed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celery_pgbeat.declare.columns import read_count, read_group_name
from celery_pgbeat.postgres.api_queries import ApiQueries


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """One group, as it stood when it was read.

    Attributes:
        name: as in the column `group_name` of its periodic tasks.
        max_active: at most so many of its jobs are under way at a time; None: no limit.
        paused: whether none of its periodic tasks runs.
        pause_reason: why; None where nobody said.
    """

    name: str
    max_active: int | None
    paused: bool
    pause_reason: str | None


@dataclass(frozen=True, slots=True)
class GroupStatus(TaskGroup):
    """One group, and how it stands.

    Attributes:
        tasks: how many periodic tasks name it.
        active: how many of its jobs are under way: sent, queued, running or retrying.
        waiting: how many of its jobs wait for a place.
    """

    tasks: int
    active: int
    waiting: int


class GroupApi:
    """What `PgBeat` says of groups. A group is there as soon as a periodic task names it: `group_name="reports"`."""

    @property
    def _queries(self) -> ApiQueries:
        raise NotImplementedError

    def limit_group(self, name: str, max_active: int | None, *, connection: Any = None) -> TaskGroup:
        """Set how many jobs of a group may be under way at a time, in the whole cluster.

        The others wait for a place and take their turn by `scheduled_for`. A lower limit ends no job.

        Args:
            name: of the group.
            max_active: at least 1; None for no limit.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: the name is no text of 1 to 200 characters, or `max_active` no number from 1 on.

        Example:
            >>> beat.limit_group("reports", max_active=2).max_active
            2
        """
        limit = None if max_active is None else read_count("max_active", max_active)
        (row,) = self._queries.run("limit_group", connection, name=read_group_name("name", name), max_active=limit)
        return TaskGroup(**row)

    def pause_group(self, name: str, reason: str | None = None, *, connection: Any = None) -> TaskGroup:
        """Pause all periodic tasks of a group. Messages already at the broker still run.

        Raises:
            UnknownGroup: no periodic task names the group, and it has no limit either.

        Example:
            >>> beat.pause_group("reports", reason="stocktaking").paused
            True
        """
        (row,) = self._queries.run("pause_group", connection, name=name, reason=reason)
        return TaskGroup(**row)

    def resume_group(self, name: str, *, connection: Any = None) -> TaskGroup:
        """Resume a group; paused time is never caught up. A row that is paused by itself stays so.

        Raises:
            UnknownGroup: the group has never been paused or limited.

        Example:
            >>> beat.resume_group("reports").paused
            False
        """
        (row,) = self._queries.run("resume_group", connection, name=name)
        return TaskGroup(**row)

    def groups(self, *, connection: Any = None) -> Sequence[GroupStatus]:
        """List all groups that a periodic task names or that have a limit or a pause, in name order.

        Example:
            >>> [(group.name, group.tasks) for group in beat.groups()]
            [('reports', 0)]
        """
        return [GroupStatus(**row) for row in self._queries.run("groups", connection)]
