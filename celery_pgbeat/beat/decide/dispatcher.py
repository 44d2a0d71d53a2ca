"""One tick, and what is left to repair if a beat is killed at any point of it.

`docs/architecture.md` draws the tick: mark, decide, submit, publish, confirm. Each but the decision is one statement or
one message. What a mark submits at once (`mark.sql`) needs no decision and goes on with publish.

A beat may be killed or stopped between any two of these:

    after mark      The rows stay marked. When the mark is older than the lease, any beat marks them anew and decides
                    the same occurrence: `next_run_at` has not moved. What the mark has submitted at once is as after
                    submit.
    after submit    The job's row is pending, but no broker has its message. When the lease is over, any beat takes
                    the job over and sends it under the same id. The other order, message first, could run a task of
                    which no row knows.
    after publish   The same, but now there are two messages with one id: the worker's guard starts one of them.
    after confirm   Nothing is left to repair.

The one invariant: what a stalled beat does late changes nothing. Its submit and its confirm find another mark than its
own, or none. And it reads its own clock before it publishes: the lease begins *before* the mark is sent to Postgres.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.decide.backfiller import Backfiller
from celery_pgbeat.beat.decide.judge import Judge
from celery_pgbeat.beat.decide.planner import Planner
from celery_pgbeat.beat.decide.recovery import Recovery
from celery_pgbeat.beat.decide.submitter import Submitter
from celery_pgbeat.beat.log_throttle import LogThrottle
from celery_pgbeat.beat.send.broker import Broker
from celery_pgbeat.beat.send.closed_queues import ClosedQueues
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.outgoing_jobs import job_at_once
from celery_pgbeat.beat.steps import Steps
from celery_pgbeat.beat.upkeep.tracking import Tracking
from celery_pgbeat.declare.sendable import check_sendable
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.planning import Decision, Due, Postponed, Rules, decide
from celery_pgbeat.postgres.beat_queries import BeatQueries, Marked, PendingWork
from celery_pgbeat.settings import Settings

if TYPE_CHECKING:
    from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules

logger = logging.getLogger(__name__)

FRESH_SHARE = 4  # while there is a backlog, a quarter of each batch is reserved for the newest due rows
SMALLEST_BATCH = 10
FIRST_BATCH = 250  # of rows that are due together; doubled while there are more, so that beats that wake share them
LEASE_SHARE = 3  # a batch is as large as can be delivered in a third of its lease: it may wait for the one before it
AGAIN = 0.05  # seconds until locked rows are tried again, doubled up to the poll
PROBED_WITHIN = 0.25  # seconds that a cycle waits for a probe of the broker; one that answers connects sooner
DECIDED_WITHIN = 0.5  # seconds; a row that takes long to decide delays the other due rows by this, not by a batch
LOOK_EVERY = 0.1  # seconds at most between two looks, while each mark finds more that is due
SUBMIT_DUE = "submit due rows"
BEHIND = timedelta(seconds=1)  # how late a row is that may be due again at once, because it catches up

# The name of a step, for the log; whether it is needed, by the pending work that the look has found; and the step. It
# returns whether it made progress. Progress may have made something else due, so the beat looks again at once.
Step = tuple[str, Callable[[PendingWork], bool], Callable[[], bool]]


@dataclass(eq=False, repr=False, kw_only=True)
class Dispatcher:
    """Does what there is to do, one batch a cycle. `beat/wiring.py` makes its parts.

    Args:
        look_every: see `LOOK_EVERY`; 0 to look in each cycle.
        stopwatch: what limits the time for deciding, in seconds.
    """

    queries: BeatQueries
    broker: Broker
    closed: ClosedQueues
    delivery: Delivery
    planner: Planner
    submitter: Submitter
    recovery: Recovery
    backfiller: Backfiller
    judge: Judge
    tracking: Tracking
    clock: DatabaseClock
    settings: Settings
    rules: Rules
    code: CodeSchedules
    throttle: LogThrottle
    observer: Observer
    steps: Steps
    look_every: float = LOOK_EVERY
    stopwatch: Callable[[], float] = boottime

    def __post_init__(self) -> None:
        self._stuck_pause = 0.0  # seconds of the last pause without progress
        self._has_future_marks = True  # whether there may be jobs that were marked before the clock was set back
        self._unreported = False  # whether there are jobs whose end only the result backend knows
        self._ask_at = 0.0  # by the boot-time clock: until then the result backend is not asked about all jobs
        self._look_at = 0.0  # by the boot-time clock: until then due rows are marked without a look
        self._more_is_due = False  # whether another mark will probably find something
        self._due_at: datetime | None = None  # what the last look has announced, until a mark
        self._batch = self.settings.batch
        self._most_per_mark = FIRST_BATCH  # rows; doubled while there are more that are due together
        # A beat that sends nothing, or not everything, decides about each row in Python: no mark submits it.
        self._decides_each_row = self.settings.shadow or not self.settings.allows_all
        self._backlog = False  # whether more is due than one batch takes
        self._is_to_send = False  # whether the last look found something to send
        self._before_sending: Sequence[Step] = (
            ("confirm again", lambda _: True, self.delivery.confirm_again),
            ("lower tracking", lambda _: True, self.tracking.lower),
            ("pause failing", lambda work: work.failing, self._pause_failing),
            ("pause failed groups", lambda work: work.failing, self._pause_failed_groups),
            ("resume", lambda work: work.resumes, lambda: self.planner.resume(self._batch)),
            ("plan", lambda work: work.unplanned, lambda: self.planner.plan(self._batch)),
            # It decides nothing: it sets the check_at of jobs that are in time to their deadlines.
            ("recheck", lambda work: work.in_time, lambda: self.queries.recheck(self._batch) > 0),
            ("recheck future marks", lambda _: self._has_future_marks, self._recheck_future_marks),
            (
                "judge",
                lambda work: work.past_deadline and self.clock.may_judge,
                lambda: self.judge.judge(self._batch, self._unreported),
            ),
            (
                "finish by result",
                lambda work: work.unreported and boottime() >= self._ask_at,
                self._finish_by_result,
            ),
            (
                "settle downstream",
                lambda work: work.downstream,
                lambda: self.queries.settle_downstream(self._batch) > 0,
            ),
            ("grant slots", lambda work: work.slots_to_grant, lambda: self.queries.grant_slots(self._batch) > 0),
        )
        self._sending: Sequence[Step] = (
            ("submit again", lambda _: self.submitter.has_retries, self.submitter.submit_again),
            ("recover", lambda work: work.unsent, self._recover),
            (SUBMIT_DUE, lambda work: work.due, self._submit_due),
            (
                "backfill",
                lambda work: work.backfills and not self.settings.shadow,
                lambda: self.backfiller.run_cycle(self.code.lazy_names),
            ),
        )

    def run_cycle(self) -> float:
        """Do what there is to do; return the seconds until there may be more (0: at once).

        If Postgres ends a statement in favour of others, the next cycle takes a smaller batch.

        Raises:
            DatabaseUnavailable: no step can work now. So do the other errors of `OUTAGES`.
        """
        self.steps.begin()
        try:
            self.delivery.check()
            rest = self._run_cycle()
        except BaseException as error:  # the delivery's may be no Exception
            self._look_at = 0.0
            if isinstance(error, DatabaseBusy):
                self._take_less()
            raise
        if self.steps.has_failed:
            self._look_at = 0.0
        if self.steps.was_busy:
            self._take_less()
        else:
            self._batch = min(self._batch + self._batch // 4, self.settings.batch)
        return rest

    @property
    def broker_problem(self) -> str | None:
        """Why the broker takes no message, or none for some queues, for people; None where there is nothing to send."""
        return self.closed.problem or (self.broker.problem if self._is_to_send else None)

    def _take_less(self) -> None:
        self._batch = max(min(self._batch, self._most_per_mark) // 2, SMALLEST_BATCH)

    def _run_cycle(self) -> float:
        if (
            self._may_mark_at_once()
            and self.broker.is_ready_within(PROBED_WITHIN)
            and self.steps.attempt(SUBMIT_DUE, self._submit_due)
        ):
            return 0.0
        work = self._look()
        progress = self._run(self._before_sending, work)
        self._is_to_send = bool(work.due or work.unsent or work.backfills or self.submitter.has_retries)
        if self._is_to_send:
            if not self.broker.is_ready_within(PROBED_WITHIN):
                return 0.0 if progress else min(self.broker.probe_in, self.settings.longest_rest.total_seconds())
            progress = self._run(self._sending, work) or progress
        return self._rest(work, progress)

    def _run(self, steps: Sequence[Step], work: PendingWork) -> bool:
        """Run the steps that are needed, in their order; return whether any of them made progress."""
        progress = False
        for name, is_needed, step in steps:
            if is_needed(work):
                progress = self.steps.attempt(name, step) or progress
        return progress

    def _may_mark_at_once(self) -> bool:
        """Return whether something is due without a look, and the last look is not too long ago."""
        if boottime() >= self._look_at or not self.broker.is_proven or self.tracking.is_to_be_lowered:
            return False
        return self._more_is_due or (self._due_at is not None and self._due_at <= self.clock.database_time)

    def _look(self) -> PendingWork:
        work = self.queries.look(self.code.lazy_names, *self.closed.excluded())
        self.observer.looked()
        if self.clock.saw(work.now):
            self._has_future_marks = True
        self._unreported = work.unreported
        self._look_at = boottime() + self.look_every
        self._more_is_due, self._due_at = False, work.next_run_at
        return work

    def _rest(self, work: PendingWork, progress: bool) -> float:
        """Return the seconds until something may be due, as far as this look could see.

        If another transaction locks the rows, the pause grows: the beat must neither loop without a pause nor make the
        other rows late.
        """
        if progress:
            self._stuck_pause = 0.0
            return 0.0
        rest = self.settings.longest_rest.total_seconds()
        is_left = work.due or work.unplanned or work.slots_to_grant or work.downstream
        is_left = is_left or work.failing or work.backfills
        if is_left or self.submitter.has_retries or self.delivery.has_unconfirmed:
            self._stuck_pause = min(max(self._stuck_pause * 2, AGAIN), rest)
            rest = self._stuck_pause
        # While a batch waits nothing can be marked; the delivery wakes this thread when it has begun that batch.
        if work.next_run_at is not None and self.delivery.wait_for_place():
            rest = min(rest, (work.next_run_at - self.clock.database_time).total_seconds())
        return max(min(rest, self.steps.again_in), 0.0)

    def _submit_due(self) -> bool:
        """Mark, decide and submit one batch, and have it delivered; return whether anything was due.

        What the mark has submitted at once is delivered first.
        """
        if not self.delivery.wait_for_place():
            return False
        lease = self.settings.lease.total_seconds()
        lease_ends = boottime() + lease
        marked = self._mark(lease)
        self._more_is_due, self._due_at = len(marked) > 1 or self._backlog or marked.late_by > BEHIND, None
        self.delivery.deliver([job_at_once(row) for row in marked.at_once], lease_ends)
        due = marked.due
        if self._unreported and due:
            names = [row.name for row in due]
            self.steps.attempt("finish by result", lambda: self.tracking.finish_by_result(self._batch, names))
        decisions, postponed, bad = self._decide(due)
        undecided = due[len(decisions) + len(postponed) + len(bad) :]
        if undecided:
            self.steps.attempt("unmark", lambda: self._unmark(undecided))
        if bad:
            self.steps.attempt("report problems", lambda: self.planner.report(bad))
        if postponed:
            self.steps.attempt("postpone", lambda: self.queries.postpone(postponed))
        if decisions:
            self.submitter.submit(decisions, lease_ends)
        return len(marked) > 0

    def _recover(self) -> bool:
        """Take over a batch; only a few while it is not known whether the broker takes any, but not one alone.

        The one may be what breaks the connection, and the publisher sends such a suspect last.
        """
        batch = self._batch if self.broker.is_proven else SMALLEST_BATCH
        return self.recovery.recover(batch, self.code.lazy_names)

    def _mark(self, lease: float) -> Marked:
        """Mark a batch of due rows; the size follows the backlog, and what the delivery can do within the lease."""
        deliverable = max(self.delivery.most_within(lease / LEASE_SHARE), SMALLEST_BATCH)
        batch = int(min(self._batch, self._most_per_mark, deliverable))
        if not self.broker.is_proven:
            batch = 1  # the others may stay due
        elif self.closed.is_unprobed:
            batch = min(batch, SMALLEST_BATCH)
        closed = self.closed.excluded()
        newest = batch // FRESH_SHARE if self._backlog else 0
        full_acts_as = self.tracking.full_acts_as()
        began = time.time_ns()
        if self._decides_each_row:
            marked = Marked(self.queries.mark(batch, self.code.lazy_names, newest, *closed), [])
        else:
            marked = self.queries.mark_or_submit(batch, self.rules, full_acts_as, self.code.lazy_names, newest, *closed)
        self.observer.marked(marked, began)
        self._backlog = len(marked) >= batch - newest
        self._most_per_mark = min(self._most_per_mark * 2, self.settings.batch) if self._backlog else FIRST_BATCH
        return marked

    def _decide(self, due: Sequence[Due]) -> tuple[list[Decision], list[Postponed], list[tuple[Due, Exception]]]:
        """Decide about marked rows; only about the first ones if the time is over before the last."""
        decisions: list[Decision] = []
        postponed: list[Postponed] = []
        bad: list[tuple[Due, Exception]] = []
        ends = self.stopwatch() + DECIDED_WITHIN
        for number, row in enumerate(due):
            if number and self.stopwatch() >= ends:
                break
            try:
                check_sendable(row.queue, row.options, row.args, row.kwargs)
                decision = decide(row, self.rules)
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and its problem has the reason
                bad.append((row, error))
                continue
            if isinstance(decision, Postponed):
                postponed.append(decision)
                logger.info(
                    "Postponed %r to %s, out of a blackout window",
                    row.name,
                    decision.next_run_at.isoformat(),
                    extra={"action": "plan"},
                )
                continue
            # Of a task for people nothing is sent: it has no task here.
            refusal = self.settings.refusal(row.task, row.queue, row.options) if row.task else None
            if refusal is not None:
                decision = decision.refused("not_allowed")
                if self.throttle.is_due(row.name):
                    logger.warning("Skipped %r: %s", row.name, refusal, extra={"action": "skip"})
            decisions.append(decision)
        return decisions, postponed, bad

    def _unmark(self, undecided: Sequence[Due]) -> None:
        """Unmark rows that there was no time for; the next batch is smaller, with a share for the newest due rows."""
        self._most_per_mark, self._backlog = SMALLEST_BATCH, True
        self.queries.unmark([row.name for row in undecided])

    def _pause_failing(self) -> bool:
        """Pause rows that have failed too often in a row; return whether there were any not locked."""
        found = self.queries.pause_failing(self._batch)
        for name, reason in found:
            if reason is not None:
                logger.warning("Paused %r: %s", name, reason, extra={"action": "pause"})
        return bool(found)

    def _pause_failed_groups(self) -> bool:
        """Pause groups of which a job has failed; return whether there were any not locked."""
        groups = self.queries.pause_failed_groups()
        for name, reason in groups:
            logger.warning("Paused the group %r: %s", name, reason, extra={"action": "pause"})
        return bool(groups)

    def _recheck_future_marks(self) -> bool:
        """Find jobs that were marked before the database's clock was set back; return whether there were any."""
        found = self.queries.recheck_future_marks()
        self._has_future_marks = False
        return found > 0

    def _finish_by_result(self) -> bool:
        """Ask the result backend about all unreported jobs, at most once a poll."""
        self._ask_at = boottime() + self.settings.poll.total_seconds()
        self.tracking.finish_by_result(self._batch)
        return False  # it asks again only after a poll
