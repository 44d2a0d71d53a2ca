"""Groups: limit, pause, resume, remove and read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery_pgbeat.api.groups import GroupStatus, TaskGroup
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.declare.columns import read_count, read_group_name
from celery_pgbeat.errors import GroupInUse, UnknownGroup
from celery_pgbeat.suggestions import did_you_mean


class GroupMethods(Connected):
    """What `PgBeat` does with groups of periodic tasks."""

    def limit_group(self, name: str, max_active: int | None, *, connection: Any = None) -> TaskGroup:
        """Set how many jobs of a group may be under way at once, in the whole cluster.

        Other jobs wait and start in order of `scheduled_for`. A lower limit ends no job.

        Args:
            name: of the group.
            max_active: at least 1; None for no limit.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: the name is not a text of 1 to 200 characters, or `max_active` is not at least 1.

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
            UnknownGroup: no periodic task names the group, and it has no limit.

        Example:
            >>> beat.pause_group("reports", reason="stocktaking").paused
            True
        """
        (row,) = self._queries.run("pause_group", connection, name=name, reason=reason)
        return TaskGroup(**row)

    def resume_group(self, name: str, *, connection: Any = None) -> TaskGroup:
        """Resume a group. Missed runs are not caught up, and a row that was paused by name stays paused.

        Raises:
            UnknownGroup: the group has never been paused or limited.

        Example:
            >>> beat.resume_group("reports").paused
            False
        """
        (row,) = self._queries.run("resume_group", connection, name=name)
        return TaskGroup(**row)

    def remove_group(self, name: str, *, connection: Any = None) -> TaskGroup:
        """Remove a group that no periodic task names, with its limit and its pause; return what it was.

        Raises:
            UnknownGroup: there is no such group.
            GroupInUse: periodic tasks name it.

        Example:
            >>> beat.limit_group("raports", max_active=2).name
            'raports'
            >>> beat.remove_group("raports").max_active
            2
        """
        rows = self._queries.run("remove_group", connection, name=name)
        if not rows:
            tasks = {group.name: group.tasks for group in self.groups(connection=connection)}
            if name not in tasks:
                raise UnknownGroup(f"No group is named {name!r}{did_you_mean(name, tasks) or '.'}")
            raise GroupInUse(
                f"{tasks[name]} periodic tasks are in the group {name!r}: give them another group_name first, or "
                "remove its limit (None) and resume it"
            )
        return TaskGroup(**rows[0])

    def groups(self, *, connection: Any = None) -> Sequence[GroupStatus]:
        """List all groups that a periodic task names or that have a limit or a pause, in name order.

        Example:
            >>> [(group.name, group.tasks) for group in beat.groups()]
            [('reports', 0)]
        """
        return [GroupStatus(**row) for row in self._queries.run("groups", connection)]
