"""Backfills: the occurrences of a range, submitted as jobs of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, overload
from uuid import UUID

from celery_pgbeat.api.preview import check_terms, preview, read_range
from celery_pgbeat.api.rows import Backfill, BackfillPreview, read_row
from celery_pgbeat.errors import UnknownBackfill
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.api_queries import ApiQueries


class BackfillApi:
    """What `PgBeat` says of backfills."""

    @property
    def _queries(self) -> ApiQueries:
        raise NotImplementedError

    @property
    def _rules(self) -> Rules:
        raise NotImplementedError

    def _row(self, statement: str, name: str, connection: Any) -> Mapping[str, Any]:
        raise NotImplementedError

    @overload
    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        mode: str = ...,
        max_active: int = ...,
        dry_run: Literal[False] = ...,
        *,
        connection: Any = ...,
    ) -> Backfill: ...

    @overload
    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        mode: str = ...,
        max_active: int = ...,
        *,
        dry_run: Literal[True],
        connection: Any = ...,
    ) -> BackfillPreview: ...

    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime,
        mode: str = "missing",
        max_active: int = 1,
        dry_run: bool = False,
        *,
        connection: Any = None,
    ) -> Backfill | BackfillPreview:
        """Submit the occurrences of a range, each as a job of its own with that instant as its `scheduled_for`.

        The beats do it, the oldest first, also for a paused or finished row; jitter and blackout windows do not count,
        nor does it count against `max_runs`. Unless the row's overlap is `allow`, nothing of it starts beside a job of
        the row that is not its own. Occurrences are those of the schedule as it stands; an interval without `anchor`
        or `start_at`, or a recurrence rule without DTSTART, has none from before it was set.

        Args:
            name: of the row.
            since: the first instant of the range, inclusive; aware.
            until: the last instant of the range, inclusive; aware, and not in the future.
            mode: `missing`: what never had a job, or was only skipped; `failed`: what failed, was lost or expired, and
                has not succeeded since; `all`: everything, again. The history goes back as far as `pgbeat_retention`:
                what is older counts as missing.
            max_active: at most so many of its jobs are under way at once, up to 1,000.
            dry_run: only tell what it would do; writes nothing.
            connection: join this transaction.

        Raises:
            InvalidPeriodicTask: the row has no schedule, or an argument is wrong; names it and its value.
            UnknownPeriodicTask: there is no such row; suggests a near name.
            InvalidSchedule: `dry_run`: the row cannot be planned as it is.

        Example:
            >>> from datetime import datetime, timezone
            >>> may = datetime(2026, 5, 1, tzinfo=timezone.utc), datetime(2026, 5, 31, tzinfo=timezone.utc)
            >>> beat.backfill("nightly", *may, dry_run=True).to_submit
            30
            >>> beat.backfill("nightly", *may, max_active=2).state
            'running'
        """
        since, until = read_range(since, until)
        check_terms(mode, max_active)
        if dry_run:
            row = self._row("foresee_backfill", name, connection)
            return preview(self._queries, connection, row, self._rules, since, until, mode, max_active)
        (made,) = self._queries.run(
            "backfill", connection, name=name, since=since, until=until, mode=mode, max_active=max_active
        )
        return self._backfill(made["id"], connection)

    def backfills(
        self,
        name: str | None = None,
        state: str | None = None,
        limit: int = 100,
        *,
        id: UUID | str | None = None,
        connection: Any = None,
    ) -> Sequence[Backfill]:
        """Read backfills, the latest first: how far each has come. Those that are over are kept for `pgbeat_retention`.

        Args:
            name: only those of this row.
            state: only those that are `running`, `finished` or `cancelled`.
            limit: at most so many.
            id: only this one.
            connection: read in this transaction.

        Raises:
            UnknownBackfill: `id` is no UUID.

        Example:
            >>> [(one.state, one.active) for one in beat.backfills("nightly", limit=1)]
            [('running', 0)]
        """
        wanted = None if id is None else str(_uuid(id))
        rows = self._queries.run("backfills", connection, name=name, state=state, id=wanted, limit=limit)
        return [read_row(Backfill, row) for row in rows]

    def cancel_backfill(self, id: UUID | str, *, connection: Any = None) -> Backfill:
        """Cancel a backfill: what it has not decided yet is dropped, the jobs that it has made go on.

        Raises:
            UnknownBackfill: there is none of this id.
            BackfillOver: it is finished or cancelled already.

        Example:
            >>> beat.cancel_backfill(beat.backfills("nightly", "running")[0].id).state
            'cancelled'
        """
        (row,) = self._queries.run("cancel_backfill", connection, id=str(_uuid(id)))
        return self._backfill(row["id"], connection)

    def _backfill(self, id: UUID | str, connection: Any) -> Backfill:
        (row,) = self.backfills(id=id, connection=connection)
        return row


def _uuid(id: UUID | str) -> UUID:
    try:
        return UUID(str(id))
    except ValueError:
        raise UnknownBackfill(
            f"There is no backfill {id!r}: what names one is a UUID, as backfills() tells it"
        ) from None
