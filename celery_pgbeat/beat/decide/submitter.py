"""Submits decisions, and has the jobs delivered that this makes.

Most occurrences find nothing in their way and take the short statement; what that leaves untouched takes the one that
knows every overlap policy. What neither could submit is kept, its row held by somebody or Postgres too busy for so
many at once, and tried again until the lease is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.send.delivery import Delivery, Order
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.upkeep.result_poller import ResultPoller
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.planning import Decision, Rules
from celery_pgbeat.postgres.beat_queries import BeatQueries, Submitted

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class PendingRetry:
    """Decisions to be submitted again."""

    decisions: list[Decision]
    lease_ends: float


class Submitter:
    """Submits for one beat."""

    def __init__(
        self, store: BeatQueries, delivery: Delivery, outcomes: ResultPoller, watch: DatabaseClock, rules: Rules
    ) -> None:
        self._store = store
        self._delivery = delivery
        self._result_poller = outcomes
        self._watch = watch
        self._rules = rules
        self._retries: list[PendingRetry] = []
        self._acts_as = "full"  # what `tracking = full` comes to
        self.workers_track = False  # whether workers announce our tracker, so that silence means "never picked up"
        self.busy: DatabaseBusy | None = None  # what Postgres said to the decisions that were held, this turn

    @property
    def has_retries(self) -> bool:
        """Whether decisions are held."""
        return bool(self._retries)

    def submit(self, decisions: list[Decision], lease_ends: float) -> bool:
        """Submit, and deliver the jobs; tell whether any decision was submitted.

        Raises:
            DatabaseBusy: Postgres ended the statement; the decisions are held, in two halves.
        """
        self._track()
        rest = self._submit_by(self._free, decisions, lease_ends)
        left = self._submit_by(self._any, rest, lease_ends) if rest else []
        self._hold(left, lease_ends)
        return len(left) < len(decisions)

    def full_acts_as(self) -> str:
        """Return what `tracking = full` comes to now."""
        self._track()
        return self._acts_as

    def submit_held(self) -> bool:
        """Try again what could not be submitted; tell whether anything of it was.

        Where Postgres is too busy for it still, `busy` says so, and the turn goes on with what else there is.
        """
        self.busy = None
        held, self._retries = self._retries, []
        submitted = False
        while held and self.busy is None and self._delivery.wait_for_place():
            one = held.pop(0)
            try:
                submitted = (boottime() < one.lease_ends and self.submit(one.decisions, one.lease_ends)) or submitted
            except DatabaseBusy as error:
                self.busy = error
        self._retries = held + self._retries
        return submitted

    def _free(self, decisions: list[Decision]) -> list[Submitted]:
        return self._store.submit_free(decisions, self._rules.timezone, self._acts_as)

    def _any(self, decisions: list[Decision]) -> list[Submitted]:
        return self._store.submit(
            decisions,
            self._rules.timezone,
            self._watch.may_judge,
            resending=self.workers_track,
            full_acts_as=self._acts_as,
        )

    def _submit_by(
        self, statement: Callable[[list[Decision]], list[Submitted]], decisions: list[Decision], lease_ends: float
    ) -> list[Decision]:
        """Submit by this statement and deliver the jobs; return what it left."""
        try:
            answers = {answer.name: answer for answer in statement(decisions)}
        except DatabaseBusy:
            middle = (len(decisions) + 1) // 2
            self._retries += [
                PendingRetry(part, lease_ends) for part in (decisions[:middle], decisions[middle:]) if part
            ]
            raise
        orders: list[Order] = []
        waiting: list[str] = []
        left: list[Decision] = []
        for decision in decisions:
            answer = answers.get(decision.row.name)
            if answer is None:
                left.append(decision)
                continue
            _log(decision, answer)
            if answer.waits:
                waiting.append(answer.name)
            elif answer.made and decision.job is not None:
                orders.append((decision.job, answer.name, partial(OutgoingJob.decided, decision, self._rules.timezone)))
        self._delivery.deliver(orders, lease_ends)
        if waiting:
            self._store.release(waiting)
        return left

    def _hold(self, decisions: Sequence[Decision], lease_ends: float) -> None:
        """Keep for another try what the submit stepped over because somebody held the row, not what lost its mark."""
        if decisions:
            still = self._store.still_marked([decision.row.name for decision in decisions])
            left = [decision for decision in decisions if decision.row.name in still]
            if left:
                self._retries.append(PendingRetry(left, lease_ends))

    def _track(self) -> None:
        """Ask what `tracking = full` comes to; where nobody reports, what is at the broker is tracked as the rest."""
        acts_as = self._result_poller.full_acts_as(self.workers_track)
        if acts_as not in ("full", self._acts_as):
            self._store.untrack(acts_as)
        self._acts_as = acts_as


def _log(decision: Decision, answer: Submitted) -> None:
    name = decision.row.name
    if answer.lost is not None:
        logger.warning("Lost job %s of %r: it was silent for too long", answer.lost, name, extra={"action": "lose"})
    if decision.job is not None and not answer.made and decision.scheduled_for is not None:
        logger.info(
            "Skipped %r for %s: job %s is not final",
            name,
            decision.scheduled_for.isoformat(),
            answer.blocked_by,
            extra={"action": "skip"},
        )
    if decision.skipped is not None:
        logger.info(
            "Skipped %r: %d occurrences up to %s, %s",
            name,
            decision.skipped.count,
            decision.skipped.last.isoformat(),
            decision.skipped.reason,
            extra={"action": "skip"},
        )
