"""Submits what people have asked for a range of occurrences: a step of one backfill at a time, beside the ticks.

A step is four statements, each of which commits: mark the backfill, recall what has had a job, submit (the jobs and how
far it has come, in one), and the delivery's confirm. A kill after the mark leaves a mark that lapses, and the next beat
decides the same occurrences under the same ids; after the submit it leaves pending jobs, as that of a tick does.

A step is bounded, so the ticks do not wait for it; where more is to be decided the next turn goes on.
"""

from __future__ import annotations

import logging
from functools import partial
from uuid import UUID

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.beat.decide.planner import problem_of
from celery_pgbeat.beat.decide.submitter import Submitter
from celery_pgbeat.beat.send.delivery import Delivery, Order
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.planning import NOTHING, BackfillRow, BackfillStep, Rules, range_of
from celery_pgbeat.planning.due_times import pickup_after
from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.settings import Settings

logger = logging.getLogger(__name__)

MOST_TRIED = 10  # backfills in one turn, of which each is somebody's who holds its row


class Backfiller:
    """Fills ranges in, for one beat."""

    def __init__(
        self, store: BeatQueries, delivery: Delivery, submitter: Submitter, settings: Settings, rules: Rules
    ) -> None:
        self._store = store
        self._delivery = delivery
        self._submitter = submitter
        self._settings = settings
        self._rules = rules
        self._left: set[UUID] = set()  # backfills whose rows somebody held: those behind them come first

    def turn(self, lazy_names: list[str]) -> bool:
        """Make one step of one backfill; tell whether there may be more to do at once."""
        for _ in range(MOST_TRIED):
            if not self._delivery.wait_for_place():
                return False
            lease_ends = boottime() + self._settings.lease.total_seconds()
            filling = self._store.mark_backfill(self._rules.timezone, lazy_names, self._left)
            if filling is None:
                self._left.clear()
                return False
            if self._step(filling, lease_ends):
                return True
            self._left.add(filling.backfill)
        return False

    def _step(self, filling: BackfillRow, lease_ends: float) -> bool:
        """Make one step of a marked backfill, or end it; tell whether that was done."""
        try:
            problem = self._problem_of(filling)
            if problem is not None:
                return self._end(filling, problem)
            span = range_of(filling, filling.since, filling.until, filling.mode, self._rules)
        except Exception as error:  # noqa: BLE001  one bad row stops only itself, and says why
            return self._end(filling, problem_of(error))
        history = NOTHING
        if span.asks_history:
            history = self._store.recall(filling.name, filling.reached or span.begin, span.end)
        try:
            step = span.step(filling.reached, history, filling.room, filling.undecided_from)
            total = span.total(filling, step)
            patience = pickup_after(span.line, step.jobs[-1] if step.jobs else None, self._rules)
        except Exception as error:  # noqa: BLE001  likewise
            return self._end(filling, problem_of(error))
        jobs = [span.job_id(filling.backfill, occurrence) for occurrence in step.jobs]
        acts_as = self._submitter.full_acts_as()
        answer = self._store.submit_backfill(filling, step, jobs, total, patience, acts_as)
        if answer not in ("submitted", "waiting"):
            return False
        _log(filling, step)
        if answer == "waiting":  # for places in their group
            return True
        orders: list[Order] = [
            (job, filling.name, partial(OutgoingJob.filled_in, filling, job, occurrence))
            for job, occurrence in zip(jobs, step.jobs, strict=True)
        ]
        self._delivery.deliver(orders, lease_ends)
        return True

    def _problem_of(self, filling: BackfillRow) -> str | None:
        """Return why a backfill cannot go on, as far as its row and the settings tell."""
        if not filling.is_there:
            return "its periodic task was removed or renamed"
        if filling.schedule is None:
            return "its periodic task has no schedule any more"
        return self._settings.refusal(filling.task, filling.queue, filling.options)

    def _end(self, filling: BackfillRow, problem: str) -> bool:
        """End a backfill that cannot go on; tell whether it was not left to newer beats."""
        ended = self._store.end_backfill(filling, problem)
        if ended:
            logger.error("Ended the backfill of %r: %s", filling.name, problem, extra={"action": "backfill"})
        return ended


def _log(filling: BackfillRow, step: BackfillStep) -> None:
    logger.info(
        "Backfilled %r up to %s: %d submitted, %d skipped%s",
        filling.name,
        step.reached.isoformat(),
        len(step.jobs),
        step.skipped,
        "" if step.next_at is not None else "; that was the last",
        extra={"action": "backfill"},
    )
