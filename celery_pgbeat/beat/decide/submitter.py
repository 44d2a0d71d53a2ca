"""Submits decisions, and hands the jobs that this makes to the delivery.

If another transaction locks a row, or Postgres is too busy, the decisions are kept and submitted again in later cycles,
until their lease is over.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.outgoing_jobs import job_of_decision
from celery_pgbeat.beat.upkeep.tracking import Tracking
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.planning import Decision, Rules
from celery_pgbeat.postgres.beat_queries import BeatQueries, Submitted

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class PendingRetry:
    """Decisions to be submitted again."""

    decisions: list[Decision]
    lease_ends: float


@dataclass(eq=False, repr=False)
class Submitter:
    """Submits for one beat."""

    _queries: BeatQueries
    _delivery: Delivery
    _tracking: Tracking
    _clock: DatabaseClock
    _rules: Rules
    _observer: Observer
    _shadow: bool = False

    def __post_init__(self) -> None:
        self._retries: list[PendingRetry] = []

    @property
    def has_retries(self) -> bool:
        """Whether decisions wait to be submitted again."""
        return bool(self._retries)

    def submit(self, decisions: list[Decision], lease_ends: float) -> bool:
        """Submit decisions and deliver the jobs; return whether any decision was submitted.

        Raises:
            DatabaseBusy: Postgres ended the statement; the decisions are kept, in two halves.
        """
        full_acts_as = self._tracking.full_acts_as()
        submitted: list[Submitted] = []
        try:
            with self._observer.submitting(decisions, submitted):
                submitted += self._queries.submit(
                    decisions,
                    self._rules.timezone,
                    self._clock.may_judge,
                    self._tracking.workers_track,
                    full_acts_as,
                    self._shadow,
                )
        except DatabaseBusy:
            middle = (len(decisions) + 1) // 2
            halves = (decisions[:middle], decisions[middle:])
            self._retries += [PendingRetry(half, lease_ends) for half in halves if half]
            raise
        by_name = {one.name: one for one in submitted}
        jobs: list[OutgoingJob] = []
        for decision in decisions:
            one = by_name.get(decision.row.name)
            if one is None:
                continue
            _log(decision, one)
            job, scheduled_for = decision.job, decision.scheduled_for
            if one.made and not one.waits and job is not None and scheduled_for is not None:
                jobs.append(job_of_decision(decision, job, scheduled_for, self._rules.timezone, full_acts_as))
        self._delivery.deliver(jobs, lease_ends)
        waiting = [one.name for one in submitted if one.waits]
        if waiting:
            self._queries.promote_buffered(waiting)
        left = [decision for decision in decisions if decision.row.name not in by_name]
        if left:
            self._keep_marked(left, lease_ends)
        return len(left) < len(decisions)

    def submit_again(self) -> bool:
        """Submit what is kept; return whether any of it was submitted.

        Raises:
            DatabaseBusy: Postgres is still too busy; the decisions are kept.
        """
        kept, self._retries = self._retries, []
        submitted = False
        try:
            while kept and self._delivery.wait_for_place():
                one = kept.pop(0)
                submitted = (boottime() < one.lease_ends and self.submit(one.decisions, one.lease_ends)) or submitted
        finally:
            self._retries = kept + self._retries
        return submitted

    def _keep_marked(self, decisions: list[Decision], lease_ends: float) -> None:
        """Keep the decisions whose rows another transaction locked, but not those whose rows have lost their mark."""
        still = self._queries.still_marked([decision.row.name for decision in decisions])
        kept = [decision for decision in decisions if decision.row.name in still]
        if kept:
            self._retries.append(PendingRetry(kept, lease_ends))


def _log(decision: Decision, submitted: Submitted) -> None:
    name = decision.row.name
    if submitted.lost is not None:
        logger.warning("Lost job %s of %r: it was silent for too long", submitted.lost, name, extra={"action": "lose"})
    if submitted.reason is not None and decision.scheduled_for is not None:
        _log_skip(name, decision.scheduled_for.isoformat(), submitted)
    if decision.skipped is not None:
        logger.info(
            "Skipped %r: %d occurrences up to %s, %s",
            name,
            decision.skipped.count,
            decision.skipped.last.isoformat(),
            decision.skipped.reason,
            extra={"action": "skip"},
        )


def _log_skip(name: str, at: str, submitted: Submitted) -> None:
    """Log what kept an occurrence from getting its job."""
    extra = {"action": "skip"}
    if submitted.reason == "shadow":
        logger.info("Skipped %r for %s: shadow", name, at, extra=extra)
    elif submitted.reason == "finished":
        logger.info("Skipped %r for %s: its group is finished", name, at, extra=extra)
    elif submitted.blocked_by is None:
        logger.info("Skipped %r for %s: another job of it is not final", name, at, extra=extra)
    else:
        logger.info("Skipped %r for %s: job %s is not final", name, at, submitted.blocked_by, extra=extra)
