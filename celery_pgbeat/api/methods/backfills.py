"""Backfills: preview, start, read and cancel them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Literal, get_args, overload
from uuid import UUID

from celery_pgbeat.api.backfills import check_terms, preview, range_in, read_ends, refuse_empty
from celery_pgbeat.api.ids import read_backfill_id
from celery_pgbeat.api.methods.connected import Connected
from celery_pgbeat.api.rows import Backfill, BackfillPreview, read_row
from celery_pgbeat.api.zones import refuse_unknown_zone
from celery_pgbeat.choices import BackfillMode, BackfillState
from celery_pgbeat.declare.columns import read_choice


class BackfillMethods(Connected):
    """What `PgBeat` does with backfills."""

    @overload
    def backfill(
        self,
        name: str,
        since: date,
        until: date,
        mode: BackfillMode = ...,
        max_active: int = ...,
        dry_run: Literal[False] = ...,
        *,
        connection: Any = ...,
    ) -> Backfill: ...

    @overload
    def backfill(
        self,
        name: str,
        since: date,
        until: date,
        mode: BackfillMode = ...,
        max_active: int = ...,
        *,
        dry_run: Literal[True],
        connection: Any = ...,
    ) -> BackfillPreview: ...

    def backfill(
        self,
        name: str,
        since: date,
        until: date,
        mode: BackfillMode = "missing",
        max_active: int = 1,
        dry_run: bool = False,
        *,
        connection: Any = None,
    ) -> Backfill | BackfillPreview:
        """Submit the occurrences of a range, each as a job of its own with that instant as its `scheduled_for`.

        The beats submit them, the oldest first, also for a paused or finished row. Jitter and blackout windows do not
        apply, and the jobs do not count for `max_runs`. Unless the row's overlap is `allow`, no job of the backfill
        starts beside another job of the row. The occurrences are those of the present schedule; an interval without
        `anchor` or `start_at`, and a recurrence rule without DTSTART, have none from before they were set.

        Args:
            name: of the row.
            since: where the range begins: an instant, inclusive, or a date, which means that day in the row's zone.
            until: where it ends: an instant, inclusive, or a date, whose whole day is included; of today the part that
                has passed. It may not be in the future. Naive datetimes are read in the row's zone.
            mode: `missing`: occurrences that never had a job, or were only skipped; `failed`: those that failed, were
                lost or expired, and have not succeeded since; `all`: every one, again. The history has the last
                `pgbeat_retention`: older occurrences count as missing.
            max_active: how many of its jobs may be under way at once, up to 1,000.
            dry_run: return what it would do, and write nothing.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: the row has no schedule, an argument is wrong, or an interval has no occurrence yet at
                `until`; names the value.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            UnknownTimezone: the row's zone is needed, no beat has filled it in yet, and there is no app.
            InvalidSchedule: with `dry_run`: the row cannot be planned.

        Example:
            >>> from datetime import date
            >>> may = date(2026, 5, 1), date(2026, 5, 31)
            >>> beat.backfill("nightly", *may, dry_run=True).to_submit
            31
            >>> beat.backfill("nightly", *may, max_active=2).state
            'running'
        """
        read_ends(since, until)
        check_terms(mode, max_active)
        row = self._row("preview_backfill", name, connection)
        begin, end = range_in(row, since, until, self._app_timezone)
        refuse_empty(row, begin, end, self._app_timezone)
        if dry_run:
            refuse_unknown_zone(row, self._app_timezone)
            return preview(self._queries, connection, row, self._rules, begin, end, mode, max_active)
        (made,) = self._queries.run(
            "backfill", connection, name=name, since=begin, until=end, mode=mode, max_active=max_active
        )
        return self._backfill(made["id"], connection)

    def backfills(
        self,
        name: str | None = None,
        state: BackfillState | None = None,
        limit: int = 100,
        *,
        id: UUID | str | None = None,
        connection: Any = None,
    ) -> Sequence[Backfill]:
        """Read backfills and their progress, the latest first. Ended ones are kept for `pgbeat_retention`.

        Args:
            name: only those of this row.
            state: only those that are `running`, `finished` or `cancelled`.
            limit: how many to return at most.
            id: only this one.
            connection: read in this transaction.

        Raises:
            UnknownBackfill: `id` is not a UUID.
            InvalidPeriodicTask: there is no such state.

        Example:
            >>> [(one.state, one.active) for one in beat.backfills("nightly", limit=1)]
            [('running', 0)]
        """
        wanted = None if id is None else str(read_backfill_id(id))
        if state is not None:
            read_choice("state", state, get_args(BackfillState))
        rows = self._queries.run("backfills", connection, name=name, state=state, id=wanted, limit=limit)
        return [read_row(Backfill, row) for row in rows]

    def cancel_backfill(self, id: UUID | str, *, connection: Any = None) -> Backfill:
        """Cancel a backfill: it submits nothing more. Jobs that it has submitted go on.

        Raises:
            UnknownBackfill: there is none with this id.
            BackfillOver: it has already finished or been cancelled.

        Example:
            >>> beat.cancel_backfill(beat.backfills("nightly", "running")[0].id).state
            'cancelled'
        """
        (row,) = self._queries.run("cancel_backfill", connection, id=str(read_backfill_id(id)))
        return self._backfill(row["id"], connection)

    def _backfill(self, id: UUID | str, connection: Any) -> Backfill:
        (row,) = self.backfills(id=id, connection=connection)
        return row
