"""Groups: define, limit, pause, resume, finish, remove and read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery_pgbeat.api.groups import GroupStatus, TaskGroup, read_group
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.declare.columns import read_count, read_group_name, read_switch
from celery_pgbeat.errors import GroupInUse, UnknownGroup
from celery_pgbeat.texts.suggestions import did_you_mean


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

    def define_group(
        self,
        name: str,
        *,
        max_active: int | None = None,
        ordered: bool = False,
        waits_for: Sequence[str] | None = None,
        pause_on_failure: bool = False,
        rate_limit: str | None = None,
        connection: Any = None,
    ) -> TaskGroup:
        """Set the rules of a group. An argument that is left out becomes the default; a pause stays.

        Args:
            name: of the group.
            max_active: how many of its jobs may be under way at once, in the whole cluster; at least 1.
            ordered: its jobs run one at a time, in the order of `scheduled_for`: the next one starts when the one
                before is final.
            waits_for: a job of the group gets its turn when nothing is under way, waiting or due in these groups.
            pause_on_failure: a job that fails or is lost pauses the group; the jobs that wait are kept.
            rate_limit: how many of its jobs are sent in a second (`10` or `10/s`), minute (`100/m`) or hour (`5/h`), in
                the whole cluster. Its periodic tasks take turns, unless it is ordered.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: names what is wrong: a value, a group in `waits_for` that is not there, or the groups
                that would wait for each other.

        Example:
            >>> beat.define_group("invoices", ordered=True, pause_on_failure=True).ordered
            True
        """
        given = {
            "max_active": max_active,
            "ordered": ordered,
            "waits_for": waits_for,
            "pause_on_failure": pause_on_failure,
            "rate_limit": rate_limit,
        }
        columns = read_group(given)
        switches = {column: columns[column] or False for column in ("ordered", "pause_on_failure")}
        (row,) = self._queries.run(
            "define_group", connection, name=read_group_name("name", name), **{**columns, **switches}
        )
        return TaskGroup(**row)

    def pause_group(self, name: str, reason: str | None = None, *, connection: Any = None) -> TaskGroup:
        """Pause all periodic tasks of a group. Messages already at the broker still run.

        Raises:
            UnknownGroup: no periodic task names the group, and it has no settings.

        Example:
            >>> beat.pause_group("reports", reason="stocktaking").paused
            True
        """
        (row,) = self._queries.run("pause_group", connection, name=name, reason=reason)
        return TaskGroup(**row)

    def resume_group(self, name: str, *, retry: bool = False, connection: Any = None) -> TaskGroup:
        """Resume a paused group, or open a finished one. Missed runs are not caught up.

        Jobs that wait in it go on. A row that was paused by name stays paused.

        Args:
            name: of the group.
            retry: first run the jobs again whose failure has paused the group, before those that wait.
            connection: join this transaction.

        Raises:
            UnknownGroup: no periodic task names the group, and it has no settings.
            NothingToRetry: with `retry`, if no failed job has paused the group.
            JobInTheWay, UnknownPeriodicTask, JobNotRetriable: with `retry`, as for `retry_job`; the group stays paused.

        Example:
            >>> beat.resume_group("reports").paused
            False
        """
        (row,) = self._queries.run("resume_group", connection, name=name, retry=read_switch("retry", retry))
        return TaskGroup(**row)

    def finish_group(self, name: str, *, connection: Any = None) -> TaskGroup:
        """Finish a group: it takes no new jobs until `resume_group` opens it.

        Its occurrences are skipped, with the reason `finished`, and `trigger` is refused. Jobs that wait or are under
        way go on.

        Raises:
            UnknownGroup: no periodic task names the group, and it has no settings.

        Example:
            >>> beat.finish_group("reports").state
            'finished'
            >>> beat.resume_group("reports").state
            'active'
        """
        (row,) = self._queries.run("finish_group", connection, name=name)
        return TaskGroup(**row)

    def remove_group(self, name: str, *, connection: Any = None) -> TaskGroup:
        """Remove a group that no periodic task names, with its settings and its pause; return what it was.

        Raises:
            UnknownGroup: there is no such group.
            GroupInUse: periodic tasks name it, or another group waits for it.

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
                f"The group {name!r} has periodic tasks ({tasks[name]}): give them another group_name first, or resume "
                "it and remove its settings"
            )
        return TaskGroup(**rows[0])

    def groups(self, *, connection: Any = None) -> Sequence[GroupStatus]:
        """List all groups that a periodic task names or that have settings or a pause, in name order.

        Example:
            >>> [(group.name, group.tasks) for group in beat.groups()]
            [('reports', 0)]
        """
        return [GroupStatus(**row) for row in self._queries.run("groups", connection)]
