"""One tick, and the order in which it may be killed.

        ┌────────────────────────── pgbeat.periodic_task ──────────────────────────┐
due ──► │ mark      update … skip locked … returning        (one statement, commits)│
        └──────────────────────────────────────────────────────────────────────────┘
             plan      pure Python: which job, what is skipped, which next run
        ┌─────────────────────────── one statement, commits ───────────────────────┐
        │ submit    job rows + advance + unmark, fenced by this very mark            │
        └──────────────────────────────────────────────────────────────────────────┘
             publish   to the broker, outside any transaction, while the lease holds
        ┌──────────────────────────────────────────────────────────────────────────┐
        │ confirm   job: pending → sent                                             │
        └──────────────────────────────────────────────────────────────────────────┘

A beat may be killed or stopped between any two of these:

    after mark      the rows stay marked. When the mark is older than the lease any beat marks them anew and
                    decides the same occurrence: `next_run_at` has not moved.
    after submit    the job says pending for a message nobody has. When the lease is over any beat takes the
                    job over and sends it under the same id. The other order, message first, could run a task
                    that no row knows of.
    after publish   the same, but now there are two messages with one id: the worker's guard starts one.
    after confirm   nothing is left to repair.

The one invariant: what a stalled beat does late changes nothing. Its submit finds another mark, its confirm finds
another owner, and it reads its own clock before it publishes: the lease runs from *before* the mark was sent.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from celery_pgbeat.beat.database_clock import DatabaseClock, boottime
from celery_pgbeat.beat.decide.backfiller import Backfiller
from celery_pgbeat.beat.decide.planner import Planner, problem_of
from celery_pgbeat.beat.decide.submitter import Submitter
from celery_pgbeat.beat.log_throttle import LogThrottle
from celery_pgbeat.beat.send.delivery import Delivery
from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.beat.send.publisher import Publisher
from celery_pgbeat.beat.upkeep.result_poller import ResultPoller
from celery_pgbeat.declare.sendable import check_sendable
from celery_pgbeat.errors import DatabaseBusy
from celery_pgbeat.planning import Decision, Due, Postponed, Rules, decide, windows_of
from celery_pgbeat.postgres.beat_queries import BeatQueries, PendingWork, Recovered
from celery_pgbeat.settings import Settings

if TYPE_CHECKING:
    from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules

logger = logging.getLogger(__name__)

FRESH_SHARE = 4  # one part in so many of a batch goes to what has just come due, while a herd is driven
SMALLEST_BATCH = 10
FIRST_BATCH = 250  # of those that are due together; it doubles while there are more, so that beats that wake share them
LEASE_SHARE = 3  # a batch is as large as can be delivered in one part in so many of its lease: it may wait for another
AGAIN = 0.05  # seconds until rows that somebody held are tried again, doubled up to the poll
VERDICTS = {  # what is logged of a job that was silent for too long: the level, the action, the text
    "lost": (logging.WARNING, "lose", "Lost job %s of %r: it was silent for too long"),
    "rerun": (logging.WARNING, "rerun", "Job %s of %r runs again: it was silent for too long, and on_lost is 'rerun'"),
    "resend": (logging.INFO, "resend", "Job %s of %r is sent again: no worker started it within its pickup deadline"),
}
PROBED_WITHIN = 0.25  # seconds that a turn waits for a probe of the broker: to connect takes less, where it answers
DECIDED_WITHIN = 0.5  # seconds; a row that takes long to decide delays the others that are due by this, not by a batch
LOOK_EVERY = 0.1  # seconds at most between two looks, while each mark finds more that is due


class Dispatcher:
    """Turns what is due into messages, one batch a turn."""

    def __init__(
        self,
        store: BeatQueries,
        publisher: Publisher,
        outcomes: ResultPoller,
        watch: DatabaseClock,
        settings: Settings,
        rules: Rules,
        code: CodeSchedules,
        stopping: Callable[[], bool] = lambda: False,
        ring: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._result_poller = outcomes
        self._watch = watch
        self._settings = settings
        self._rules = rules
        self._code = code
        self._stuck = 0.0
        self._clock = clock
        self._log_throttle = LogThrottle()
        self._planner = Planner(store, settings, rules, clock)
        self._delivery = Delivery(store, publisher, self._log_throttle, stopping, ring, self._database_time)
        self._submitter = Submitter(store, self._delivery, outcomes, watch, rules)
        self._backfiller = Backfiller(store, self._delivery, self._submitter, settings, rules)
        self._ahead = True  # whether there may be jobs that were marked before the clock was set back
        self._unreported = False  # whether there are jobs that only the result backend can tell of
        self._asks_at = 0.0  # by the boot-time clock: until then, nobody is asked whose place in a group is free
        self._looks_at = 0.0  # by the boot-time clock: until then, what is due is marked without a look
        self._batch = settings.batch
        self._share = FIRST_BATCH
        self._herd = False  # more is due than a batch holds

    def _database_time(self) -> datetime:
        return self._watch.database_time

    @property
    def workers_track(self) -> bool:
        """Whether workers announce our tracker, so that silence means "never picked up"."""
        return self._submitter.workers_track

    @workers_track.setter
    def workers_track(self, known: bool) -> None:
        self._submitter.workers_track = known

    def turn(self) -> float:
        """Do what there is to do; return the seconds until there may be more (0: at once).

        Raises:
            DatabaseBusy: Postgres ended a statement in favour of others; the next turn takes a smaller batch.
        """
        try:
            self.check()
            rest = self._turn()
        except BaseException as error:  # the delivery's may be no Exception
            self._looks_at = 0.0
            if isinstance(error, DatabaseBusy):
                self._batch = max(min(self._batch, self._share) // 2, SMALLEST_BATCH)
            raise
        self._batch = min(self._batch + self._batch // 4, self._settings.batch)
        return rest

    @property
    def is_well(self) -> bool:
        """Whether the last batch was delivered; what went wrong is raised by the next turn, or by `check`."""
        return not self._delivery.is_failing

    def check(self) -> None:
        """Raise what went wrong with the delivery since the last turn, if anything did."""
        self._delivery.check()

    def finish(self, within: float) -> bool:
        """Let what is submitted be sent, or given back if the beat is to stop; tell whether that is over in time."""
        return self._delivery.finish(within)

    def _turn(self) -> float:
        if boottime() < self._looks_at and self._publisher.is_ready_within(PROBED_WITHIN) and self._drain():
            return 0.0
        view = self._store.look(self._code.lazy_names)
        if self._watch.saw(view.now):
            self._ahead = True
        self._unreported = view.unreported
        progress = self._delivery.confirm_again()
        progress = (self._pause_failing() if view.failing else False) or progress
        progress = (self._planner.resume(self._batch) if view.resumes else False) or progress
        progress = (self._planner.plan(self._batch) if view.unplanned else False) or progress
        progress = self._recheck(view) or progress
        if view.lapsed and self._watch.may_judge:
            progress = self._judge() or progress
        if view.unreported and boottime() >= self._asks_at:
            self._asks_at = boottime() + self._settings.poll.total_seconds()
            self._settle()
        progress = (self._store.admit(self._batch) > 0 if view.admissible else False) or progress
        if view.due or view.unsent or view.backfills or self._submitter.has_retries:
            if not self._publisher.is_ready_within(PROBED_WITHIN):
                return 0.0 if progress else min(self._publisher.probe_in, self._settings.poll.total_seconds())
            progress = self._submitter.submit_held() or progress
            progress = (self._recover() if view.unsent else False) or progress
            progress = (self._drain() if view.due else False) or progress
            progress = (self._backfiller.turn(self._code.lazy_names) if view.backfills else False) or progress
            if self._submitter.busy is not None:
                raise self._submitter.busy
            self._looks_at = boottime() + LOOK_EVERY
        return self._rest(view, progress)

    def _rest(self, view: PendingWork, progress: bool) -> float:
        """Return how long nothing will be due, as far as this look could see.

        What was done may have made the next thing due, so look again at once. What could not be done, because
        another transaction locks the rows, is tried again after a pause that grows: it must not become a busy loop, nor
        make the other rows late.
        """
        if progress:
            self._stuck = 0.0
            return 0.0
        rest = self._settings.poll.total_seconds()
        if (
            view.due
            or view.unplanned
            or view.admissible
            or view.failing
            or view.backfills
            or self._submitter.has_retries
            or self._delivery.is_unfinished
        ):
            self._stuck = min(max(self._stuck * 2, AGAIN), rest)
            rest = self._stuck
        if view.next_run_at is not None and not self._delivery.is_full:  # else nothing can be marked before it rings
            rest = min(rest, (view.next_run_at - self._watch.database_time).total_seconds())
        return max(rest, 0.0)

    def _drain(self) -> bool:
        """Mark, decide, submit, publish and confirm one batch; tell whether anything was due."""
        if not self._delivery.wait_for_place():
            return False
        lease = self._settings.lease.total_seconds()
        lease_ends = boottime() + lease
        deliverable = max(self._delivery.most_within(lease / LEASE_SHARE), SMALLEST_BATCH)
        batch = int(min(self._batch, self._share, deliverable))
        fresh = batch // FRESH_SHARE if self._herd else 0
        due = self._store.mark(batch, self._code.lazy_names, fresh)
        self._herd = len(due) >= batch - fresh
        self._share = min(self._share * 2, self._settings.batch) if self._herd else FIRST_BATCH
        if self._unreported:
            self._settle([row.name for row in due])
        decisions, postponed, bad = self._decide(due)
        self._give_back(due[len(decisions) + len(postponed) + len(bad) :])
        if bad:
            self._planner.report(bad)
        if postponed:
            self._store.postpone(postponed)
        if decisions:
            self._submitter.submit(decisions, lease_ends)
        return bool(due)

    def _decide(self, due: Sequence[Due]) -> tuple[list[Decision], list[Postponed], list[tuple[Due, Exception]]]:
        """Decide about marked rows, the first ones if time is up before the last."""
        decisions: list[Decision] = []
        postponed: list[Postponed] = []
        bad: list[tuple[Due, Exception]] = []
        ends = self._clock() + DECIDED_WITHIN
        for number, row in enumerate(due):
            if number and self._clock() >= ends:
                break
            try:
                check_sendable(row.queue, row.options, row.args, row.kwargs)
                decision = decide(row, self._rules)
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and says why
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
            refusal = self._settings.refusal(row.task, row.queue, row.options)
            if refusal is not None:
                decision = decision.refused("not_allowed")
                if self._log_throttle.is_due(row.name):
                    logger.warning("Skipped %r: %s", row.name, refusal, extra={"action": "skip"})
            decisions.append(decision)
        return decisions, postponed, bad

    def _give_back(self, undecided: Sequence[Due]) -> None:
        """Take the marks off rows that there was no time for; the next batch is smaller, and a part of it fresh."""
        if undecided:
            self._store.unmark([row.name for row in undecided])
            self._share, self._herd = SMALLEST_BATCH, True

    def _recover(self) -> bool:
        """Take over and send what nobody is sending; tell whether there was any."""
        if not self._delivery.wait_for_place():
            return False
        lease_ends = boottime() + self._settings.lease.total_seconds()
        recovered = self._store.recover(self._batch, self._settings.on_time, self._code.lazy_names)
        held = self._hold_back(recovered)
        orders = []
        forbidden = []
        for row in recovered:
            if row.id in held:
                continue
            if row.reason is not None:
                logger.info(
                    "Skipped %r for %s: %s",
                    row.periodic_task,
                    row.scheduled_for.isoformat(),
                    row.reason,
                    extra={"action": "skip"},
                )
            elif self._is_forbidden(row):
                forbidden.append(row.id)
            else:
                orders.append((row.id, row.periodic_task, partial(OutgoingJob.recovered, row)))
        if forbidden:
            self._store.skip(forbidden, "not_allowed")
        if orders:
            logger.info("Recovered %d unsent jobs", len(orders), extra={"action": "recover"})
            self._delivery.deliver(orders, lease_ends)
        return bool(recovered)

    def _is_forbidden(self, row: Recovered) -> bool:
        try:
            options = json.loads(row.message or "{}")["options"]
        except (ValueError, LookupError, TypeError, RecursionError):
            options = None  # what cannot be read is refused as its message is made, and says why
        return self._settings.refusal(row.task, row.queue, options if isinstance(options, dict) else {}) is not None

    def _hold_back(self, recovered: Sequence[Recovered]) -> set[uuid.UUID]:
        """Keep back what would start inside a blackout window; return these jobs, and those whose windows are bad."""
        held: list[tuple[uuid.UUID, datetime]] = []
        bad: list[tuple[uuid.UUID, str]] = []
        now = self._watch.database_time
        for row in recovered:
            if row.reason is not None or not row.blackout:
                continue
            try:
                windows = windows_of(row.blackout, row.windows, row.timezone or self._rules.timezone)
                free = now if windows is None else windows.defer(now)
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and says why
                bad.append((row.id, problem_of(error)))
                continue
            if free is None:
                bad.append((row.id, "the blackout windows never leave a free moment from here on"))
            elif free > now:
                held.append((row.id, free))
                logger.info(
                    "Held %r for %s back to %s, out of a blackout window",
                    row.periodic_task,
                    row.scheduled_for.isoformat(),
                    free.isoformat(),
                    extra={"action": "hold"},
                )
        if held:
            self._store.hold_back(held)
        if bad:
            self._store.refuse(bad)
        return {job for job, _ in held} | {job for job, _ in bad}

    def _pause_failing(self) -> bool:
        """Pause what has failed too often in a row; tell whether there was any to be had."""
        found = self._store.pause_failing(self._batch)
        for name, reason in found:
            if reason is not None:
                logger.warning("Paused %r: %s", name, reason, extra={"action": "pause"})
        return bool(found)

    def _settle(self, names: Sequence[str] = ()) -> None:
        """Ask the result backend about jobs that nobody reports, before they stand in the way or count as silent."""
        told = self._result_poller.told(self._store.unreported(self._batch, names))
        if told:
            self._store.settle(told)

    def _recheck(self, view: PendingWork) -> bool:
        """Move on the jobs that are in time, find those that the clock has left behind; tell whether there were any."""
        rechecked = self._store.recheck(self._batch) if view.in_time else 0
        if self._ahead:
            rechecked += self._store.recheck_ahead()
            self._ahead = False
        return rechecked > 0

    def _judge(self) -> bool:
        """Decide about silent jobs; tell whether there were any."""
        if self._unreported:
            self._settle()
        verdicts = self._store.judge(self._batch, self.workers_track)
        for verdict in verdicts:
            level, action, what = VERDICTS[verdict.verdict]
            logger.log(level, what, verdict.id, verdict.periodic_task, extra={"action": action})
        return bool(verdicts)
