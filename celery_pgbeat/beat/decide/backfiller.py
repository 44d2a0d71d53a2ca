"""Submits the jobs of backfills, the ranges of occurrences that people ask for: one step of one backfill at a time.

A step is four statements, each of which commits: mark the backfill, read which occurrences have had a job, submit
(the jobs and how far the backfill has come, in one statement), and the delivery's confirm. A kill after the mark leaves
the mark: when its lease is over, the next beat decides the same occurrences under the same ids. A kill after the submit
leaves pending jobs, as it does in a tick.

A step is bounded, so the ticks do not wait for it. The next cycle makes the next step.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from uuid import UUID

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.decide.planner import problem_of
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.outgoing_jobs import job_of_backfill
from celery_pgbeat.beat.upkeep.tracking import Tracking
from celery_pgbeat.planning import NOTHING, BackfillRow, BackfillStep, Rules, range_of
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

MOST_TRIED = 10  # backfills in one cycle whose rows other transactions lock


@dataclass(eq=False, repr=False)
class Backfiller:
    """Makes the steps of backfills, for one beat."""

    _queries: BeatQueries
    _delivery: Delivery
    _tracking: Tracking
    _settings: Settings
    _rules: Rules

    def __post_init__(self) -> None:
        self._left: set[UUID] = set()  # backfills whose rows were locked: all others come first

    def run_cycle(self, lazy_names: list[str]) -> bool:
        """Make one step of one backfill; return whether there may be more to do at once."""
        for _ in range(MOST_TRIED):
            if not self._delivery.wait_for_place():
                return False
            lease_ends = boottime() + self._settings.lease.total_seconds()
            row = self._queries.mark_backfill(self._rules.timezone, lazy_names, self._left)
            if row is None:
                self._left.clear()
                return False
            if self._step(row, lease_ends):
                return True
            self._left.add(row.backfill)
        return False

    def _step(self, row: BackfillRow, lease_ends: float) -> bool:
        """Make one step of a marked backfill, or end it; return whether that was done."""
        try:
            problem = self._problem_of(row)
            if problem is not None:
                return self._end(row, problem)
            chosen = range_of(row, row.since, row.until, row.mode, self._rules)
        except Exception as error:  # noqa: BLE001  one bad row stops only itself, and its backfill has the reason
            return self._end(row, problem_of(error))
        history = NOTHING
        if chosen.asks_history:
            history = self._queries.backfill_history(row.name, row.reached or chosen.begin, chosen.end)
        try:
            step = chosen.step(row.reached, history, row.room, row.undecided_from)
            total = chosen.total(row, step)
            pickup_deadline = chosen.due_times.pickup_after(step.jobs[-1] if step.jobs else None, self._rules)
        except Exception as error:  # noqa: BLE001  likewise
            return self._end(row, problem_of(error))
        ids = [chosen.job_id(row.backfill, occurrence) for occurrence in step.jobs]
        full_acts_as = self._tracking.full_acts_as()
        outcome = self._queries.submit_backfill(row, step, ids, total, pickup_deadline, full_acts_as)
        if outcome not in ("submitted", "waiting"):
            return False
        _log(row, step)
        if outcome == "waiting":  # for slots in their group, or for people
            return True
        jobs = [
            job_of_backfill(row, job, occurrence, full_acts_as) for job, occurrence in zip(ids, step.jobs, strict=True)
        ]
        self._delivery.deliver(jobs, lease_ends)
        return True

    def _problem_of(self, row: BackfillRow) -> str | None:
        """Return why a backfill cannot go on: by its row, or by the settings."""
        if not row.is_there:
            return "its periodic task was removed or renamed"
        if row.schedule is None:
            return "its periodic task has no schedule any more"
        return self._settings.refusal(row.task, row.queue, row.options) if row.task else None

    def _end(self, row: BackfillRow, problem: str) -> bool:
        """End a backfill that cannot go on; return False if that is left to newer beats."""
        ended = self._queries.end_backfill(row, problem)
        if ended:
            logger.error("Ended the backfill of %r: %s", row.name, problem, extra={"action": "backfill"})
        return ended


def _log(row: BackfillRow, step: BackfillStep) -> None:
    logger.info(
        "Backfilled %r up to %s: %d submitted, %d skipped%s",
        row.name,
        step.reached.isoformat(),
        len(step.jobs),
        step.skipped,
        "" if step.next_at is not None else "; that was the last",
        extra={"action": "backfill"},
    )
