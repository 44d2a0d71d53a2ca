"""Reading periodic tasks: what they are, when they run, and why they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from shlex import quote
from typing import Any

from celery_pgbeat.api.ahead import coming_runs, planned_anew, shown
from celery_pgbeat.api.expected_runs import ExpectedRuns
from celery_pgbeat.api.graph import Graph, read_graph
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.api.rows import Upcoming, read_row
from celery_pgbeat.api.zones import refuse_unknown_zone
from celery_pgbeat.columns import PeriodicTask
from celery_pgbeat.errors import InvalidSchedule, UnknownPeriodicTask
from celery_pgbeat.planning import Planned
from celery_pgbeat.texts import name_patterns


class ReadingMethods(Connected):
    """Reads periodic tasks."""

    def get(self, name: str, *, connection: Any = None) -> PeriodicTask:
        """Read one row.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.get("nightly").schedule
            '0 3 * * *'
        """
        return read_row(PeriodicTask, self._row("get", name, connection))

    def list(
        self,
        *,
        like: str | None = None,
        task: str | None = None,
        managed_by: str | None = None,
        group_name: str | None = None,
        enabled: bool | None = None,
        with_problem: bool | None = None,
        limit: int = 100,
        after: str = "",
        connection: Any = None,
    ) -> Sequence[PeriodicTask]:
        """Read rows in name order, a page at a time.

        Args:
            like: only names like this: `*` stands for any text, `?` for one character; without them a pattern of SQL's
                LIKE.
            task: only rows of this task.
            managed_by: only rows with this `managed_by`.
            group_name: only rows of this group.
            enabled: True for only enabled rows, False for only paused ones.
            with_problem: True for only rows that cannot be planned, or whose failed job waits for a decision; False for
                only the others.
            limit: how many to return at most.
            after: only names later than this one: the last name of the page before.
            connection: read in this transaction.

        Example:
            >>> [row.name for row in beat.list(like="night*", managed_by="api")]
            ['nightly']
        """
        rows = self._queries.run(
            "page_of_tasks",
            connection,
            pattern=None if like is None else name_patterns.like(like),
            queue=None,
            task=task,
            managed_by=managed_by,
            group_name=group_name,
            enabled=enabled,
            with_problem=with_problem,
            limit=limit,
            after=after,
        )
        return [read_row(PeriodicTask, row) for row in rows]

    def upcoming(
        self, name: str | None = None, limit: int = 100, *, after: datetime | None = None, connection: Any = None
    ) -> Sequence[Upcoming]:
        """Read the next run of each row, the soonest first, or the coming runs of one row.

        Paused and finished rows, and rows that cannot be planned, have none. The runs of one row are computed with
        bounds, jitter and blackout windows; a later edit, an outage or a job that blocks the row changes them.

        The runs of a row without a schedule that runs after others are expected, not planned: its next occurrence is
        the latest among the next ones of the tasks in its `after`. `next_run_at` is when the last of these is due. The
        row itself is due later, when they have ended, and only if they have ended as its `after_condition` asks.

        Args:
            name: of one row; None for the next run of every row.
            limit: how many to return at most.
            after: only runs later than this; a naive datetime is read in the app's zone.
            connection: read in this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.
            UnknownTimezone: no beat has planned the row yet, it has no `timezone`, and there is no app.
            InvalidSchedule: the row cannot be planned.

        Example:
            >>> [run.next_run_at.minute for run in beat.upcoming("nightly", limit=3)]
            [0, 0, 0]
        """
        after = self._aware("after", after)
        if name is None:
            return self._next_runs(limit, after, connection)
        row = self._row("preview_row", name, connection)
        if row["enabled"] and row["problem"] is None:
            refuse_unknown_zone(row, self._app_timezone)
        runs = coming_runs(row, self._rules, after)
        if row["schedule"] is None and row["runs_after_others"]:
            runs = chain(runs, self._expected_runs(name, after, connection))
        return list(islice(runs, limit))

    def _next_runs(self, limit: int, after: datetime | None, connection: Any) -> Sequence[Upcoming]:
        planned = [
            read_row(Upcoming, row) for row in self._queries.run("upcoming", connection, limit=limit, after=after)
        ]
        rows = self._queries.run("expected", connection, name=None)
        expected = [
            replace(run, note=None)  # notes are for the runs of one row
            for run in ExpectedRuns(rows, self._rules).next_of_each()
            if after is None or run.next_run_at > after
        ]
        return sorted([*planned, *expected], key=lambda run: run.next_run_at)[:limit]

    def _expected_runs(self, name: str, after: datetime | None, connection: Any) -> Iterator[Upcoming]:
        rows = self._queries.run("expected", connection, name=name)
        for row in rows:
            if row["enabled"] and row["problem"] is None:
                refuse_unknown_zone(row, self._app_timezone)
        return ExpectedRuns(rows, self._rules).of(name, after)

    def graph(self, name: str | None = None, *, connection: Any = None) -> Graph:
        """Read which rows run after which: all that take part in a dependency, or one with what is around it.

        Args:
            name: of one row: it, everything that comes before it, and everything that runs after it; None for all.
            connection: read in this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.schedule("report", task="shop.report", after=["nightly"]).after
            ['nightly']
            >>> [(node.name, node.after) for node in beat.graph("nightly").nodes]
            [('nightly', None), ('report', ['nightly'])]
        """
        rows = self._queries.run("graph", connection, name=name)
        if name is not None and not rows:
            raise UnknownPeriodicTask(self._queries.unknown(name, connection))
        return read_graph(rows)

    def explain(self, name: str, *, connection: Any = None) -> str:
        """Return in one sentence why a row is, or is not, running now.

        The sentence comes from the tables alone, so it is right even if every beat is dead. Instants are in UTC. The
        views `status` and `overdue` have the same for all rows. Only Python adds where the next run is not the one that
        its schedule says by the time zone tables of this process, and that `replan` moves it.

        Args:
            name: of the row.
            connection: read in this transaction.

        Raises:
            UnknownPeriodicTask: there is no such row; suggests a near name.

        Example:
            >>> beat.explain("nightly").partition(":")[0]
            "'nightly' is not running"
        """
        (row,) = self._queries.run("explain", connection, name=name)
        sentence = str(row["sentence"])
        anew = self._planned_anew(name, connection)
        if anew is None:
            return sentence
        right = "it never runs" if anew.next_run_at is None else f"that is {shown(anew.next_run_at)}"
        return f"{sentence}; by the time zone tables here {right}: `celery-pgbeat replan {quote(name)}` moves it"

    def _planned_anew(self, name: str, connection: Any) -> Planned | None:
        """Return what would be planned now instead of the stored next run; None too if it cannot be planned here."""
        for row in self._queries.run("preview_row", connection, name=name):
            if row["enabled"] and row["problem"] is None and row["planned_revision"] == row["revision"]:
                with suppress(InvalidSchedule):  # its zone may be known to beats alone; `doctor` says so
                    return planned_anew(row, self._rules)
        return None
