"""The statements with which beats make the steps of backfills."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from celery_pgbeat.planning import BackfillRow, BackfillStep, History
from celery_pgbeat.postgres.beat_results import as_history, planning_values
from celery_pgbeat.postgres.beat_statements import BeatStatements

HISTORY_PAGE = 2000  # jobs of the history that one step of a backfill looks at


class BackfillQueries(BeatStatements):
    """One method for each statement, of the same name."""

    def mark_backfill(
        self, default_timezone: str, lazy_names: Sequence[str] = (), but: Iterable[uuid.UUID] = ()
    ) -> BackfillRow | None:
        """Mark one running backfill that has room for a job, or is to be ended, and read what decides its occurrences.

        `but` names those that are left for a later cycle of the beat.
        """
        rows = self._run(
            "mark_backfill",
            beat=self.beat,
            lease=self.lease,
            timezone=default_timezone,
            lazy_names=list(lazy_names),
            but=list(but),
        )
        found = next((BackfillRow(*values) for values in planning_values(BackfillRow, rows)), None)
        if found is not None:
            found.backfill = uuid.UUID(str(found.backfill))
        return found

    def backfill_history(self, name: str, after: datetime, until: datetime, most: int = HISTORY_PAGE) -> History:
        """Read which occurrences after an instant have had a job, the oldest first, and whether each has failed."""
        return as_history(self._run("backfill_history", periodic_task=name, after=after, until=until, most=most))

    def submit_backfill(
        self,
        filling: BackfillRow,
        step: BackfillStep,
        jobs: Sequence[uuid.UUID],
        total: int,
        pickup_deadline: timedelta,
        full_acts_as: str = "full",
    ) -> str:
        """Submit one step of a backfill: its jobs and how far it has come, fenced by this very mark.

        Returns `submitted`, `waiting` (likewise; its jobs wait for slots in their group), `conflict` (nothing was done:
        another transaction locks the row, has changed it, or has made a job first) or `lost` (nothing was done: the
        mark is not this one any more).
        """
        (row,) = self._run(
            "submit_backfill",
            backfill=str(filling.backfill),
            beat=self.beat,
            marked_at=filling.marked_at,
            revision=filling.revision,
            jobs=list(jobs),
            scheduled_fors=list(step.jobs),
            reached=step.reached,
            next_at=step.next_at,
            total=total,
            skipped=step.skipped,
            pickup_deadline=pickup_deadline.total_seconds(),
            timezone=filling.timezone,
            full_acts_as=full_acts_as,
        )
        return str(row[0])

    def end_backfill(self, filling: BackfillRow, problem: str) -> bool:
        """End a marked backfill that cannot go on, and write down why; return whether that was done."""
        rows = self._run(
            "end_backfill",
            backfill=str(filling.backfill),
            beat=self.beat,
            marked_at=filling.marked_at,
            problem=problem,
            version=self._version,
        )
        return bool(rows)
