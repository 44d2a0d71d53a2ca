"""One tick, and the order in which it may be killed.

        ┌────────────────────────── pgbeat.periodic_task ──────────────────────────┐
due ──► │ mark      update … skip locked … returning        (one statement, commits)│
        └──────────────────────────────────────────────────────────────────────────┘
             plan      pure Python: which job, what is passed over, which next run
        ┌─────────────────────────── one statement, commits ───────────────────────┐
        │ submit    job rows + advance + unmark, fenced by this very mark            │
        └──────────────────────────────────────────────────────────────────────────┘
             publish   to the broker, outside any transaction, while the lease holds
        ┌──────────────────────────────────────────────────────────────────────────┐
        │ confirm   job: pending → submitted                                        │
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

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from celery_pgbeat.beat.clock import Watch, boottime
from celery_pgbeat.beat.messages import Job
from celery_pgbeat.beat.publisher import Publisher
from celery_pgbeat.errors import InvalidSchedule
from celery_pgbeat.planning import Decision, Due, Planned, Rules, decide, plan, refuse
from celery_pgbeat.postgres.store import Store, Submitted, View
from celery_pgbeat.settings import Settings

if TYPE_CHECKING:
    from celery_pgbeat.beat.code_schedules import CodeSchedules

logger = logging.getLogger(__name__)

STEP = 100  # messages between two confirms
AGAIN = 0.05  # seconds until rows that somebody held are tried again, doubled up to the poll


@dataclass(slots=True)
class Held:
    """Decisions whose rows somebody held when they were submitted; tried again until the lease is over."""

    decisions: list[Decision]
    lease_ends: float


class Dispatcher:
    """Turns what is due into messages, one batch a turn."""

    def __init__(
        self, store: Store, publisher: Publisher, watch: Watch, settings: Settings, rules: Rules, code: CodeSchedules
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._watch = watch
        self._settings = settings
        self._rules = rules
        self._code = code
        self._held: list[Held] = []
        self._stuck = 0.0
        self._planned_up_to = ""
        self.resending = False  # whether workers announce our tracker, so that silence means "never picked up"

    def turn(self) -> float:
        """Do what there is to do; return the seconds until there may be more (0: at once)."""
        view = self._store.look(self._code.lazy_names)
        self._watch.saw(view.now)
        progress = self._resume() if view.resumes else False
        progress = (self._plan() if view.unplanned else False) or progress
        if view.lapsed and self._watch.may_judge:
            progress = self._judge() or progress
        if view.due or view.unsent or self._held:
            if not self._publisher.ready():
                return min(self._publisher.probe_in, self._settings.poll.total_seconds())
            progress = self._submit_held() or progress
            progress = (self._recover() if view.unsent else False) or progress
            progress = (self._drain() if view.due else False) or progress
        return self._rest(view, progress)

    def _rest(self, view: View, progress: bool) -> float:
        """Return how long nothing will be due, as far as this look could see.

        What was done may have made the next thing due, so look again at once. What could not be done, because
        somebody holds the rows, is tried again after a pause that grows: it must not become a busy loop, nor
        make the other rows late.
        """
        if progress:
            self._stuck = 0.0
            return 0.0
        rest = self._settings.poll.total_seconds()
        if view.due or view.unplanned or self._held:
            self._stuck = min(max(self._stuck * 2, AGAIN), rest)
            rest = self._stuck
        if view.next_run_at is not None:
            rest = min(rest, (view.next_run_at - self._watch.database_time).total_seconds())
        return max(rest, 0.0)

    def _resume(self) -> bool:
        names = self._store.resume_due()
        for name in names:
            logger.info("Resumed %r: its pause is over", name, extra={"action": "resume"})
        return bool(names)

    def _plan(self) -> bool:
        """Plan rows that are new, edited or resumed; tell whether any was.

        Reading goes on behind the last name: rows that somebody holds must not stand before those behind them.
        """
        rows = self._store.unplanned(self._settings.batch, self._planned_up_to)
        self._planned_up_to = rows[-1].name if len(rows) == self._settings.batch else ""
        answers = []
        for row in rows:
            try:
                answers.append(plan(row, self._rules))
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and says why
                problem = _problem(row.name, error)
                answers.append(
                    Planned(row.name, row.revision, row.planned_from, None, self._settings.poll, problem=problem)
                )
        return bool(answers and self._store.plan(answers, self._rules.timezone))

    def _drain(self) -> bool:
        """Mark, decide, submit, publish and confirm one batch; tell whether anything was due."""
        lease_ends = boottime() + self._settings.lease.total_seconds()
        due = self._store.mark(self._settings.batch, self._code.lazy_names)
        decisions, problems = self._decide(due)
        if problems:
            self._store.report_problem(problems)
        if decisions:
            self._submit(decisions, lease_ends)
        return bool(due)

    def _decide(self, due: Sequence[Due]) -> tuple[list[Decision], list[tuple[Due, str]]]:
        decisions: list[Decision] = []
        problems: list[tuple[Due, str]] = []
        for row in due:
            try:
                decision = decide(row, self._rules)
            except Exception as error:  # noqa: BLE001  one bad row stops only itself, and says why
                problems.append((row, _problem(row.name, error)))
                continue
            if not self._settings.allows(row.task):
                decision = refuse(decision, "not_allowed")
                logger.warning(
                    "Skipped %r: pgbeat_allowed_tasks does not allow the task %r",
                    row.name,
                    row.task,
                    extra={"action": "skip"},
                )
            decisions.append(decision)
        return decisions, problems

    def _submit(self, decisions: list[Decision], lease_ends: float) -> bool:
        answers = {
            answer.name: answer
            for answer in self._store.submit(
                decisions, self._rules.timezone, self._watch.may_judge, resending=self.resending
            )
        }
        jobs: list[Job] = []
        unmade: list[tuple[uuid.UUID, str]] = []
        for decision in decisions:
            answer = answers.get(decision.row.name)
            if answer is None:
                continue
            _log(decision, answer)
            if answer.made and decision.job is not None:
                self._make(jobs, unmade, decision.job, partial(Job.decided, decision, self._rules.timezone))
        self._refuse(unmade)
        self._send(jobs, lease_ends)
        self._hold([decision for decision in decisions if decision.row.name not in answers], lease_ends)
        return bool(answers)

    def _hold(self, decisions: list[Decision], lease_ends: float) -> None:
        """Keep for another try what the submit stepped over because somebody held the row, not what lost its mark."""
        if decisions:
            still = self._store.still_marked([decision.row.name for decision in decisions])
            left = [decision for decision in decisions if decision.row.name in still]
            if left:
                self._held.append(Held(left, lease_ends))

    def _submit_held(self) -> bool:
        """Try again what somebody held; tell whether anything of it was submitted."""
        held, self._held = self._held, []
        submitted = [self._submit(one.decisions, one.lease_ends) for one in held if boottime() < one.lease_ends]
        return any(submitted)

    def _recover(self) -> bool:
        """Take over and send what nobody is sending; tell whether there was any."""
        lease_ends = boottime() + self._settings.lease.total_seconds()
        recovered = self._store.recover(self._settings.batch, self._settings.on_time, self._code.lazy_names)
        jobs: list[Job] = []
        unmade: list[tuple[uuid.UUID, str]] = []
        forbidden = []
        for row in recovered:
            if row.reason is not None:
                logger.info(
                    "Skipped %r for %s: %s",
                    row.periodic_task,
                    row.scheduled_for.isoformat(),
                    row.reason,
                    extra={"action": "skip"},
                )
            elif not self._settings.allows(row.task):
                forbidden.append(row.id)
            else:
                self._make(jobs, unmade, row.id, partial(Job.recovered, row))
        self._refuse(unmade)
        if forbidden:
            self._store.skip(forbidden, "not_allowed")
        if jobs:
            logger.info("Recovered %d unsent jobs", len(jobs), extra={"action": "recover"})
            self._send(jobs, lease_ends)
        return bool(recovered)

    def _make(
        self, jobs: list[Job], unmade: list[tuple[uuid.UUID, str]], job: uuid.UUID, make: Callable[[], Job]
    ) -> None:
        """Make a job's message, or note why that cannot be done: its row may hold what no message can."""
        try:
            jobs.append(make())
        except Exception as error:  # noqa: BLE001  one bad row stops only itself
            unmade.append((job, f"{type(error).__name__}: {error}"))

    def _send(self, jobs: Sequence[Job], lease_ends: float) -> None:
        """Publish and confirm in small steps: what a kill or a stop can double is one step at most."""
        for first in range(0, len(jobs), STEP):
            published = self._publisher.publish(jobs[first : first + STEP], lease_ends)
            if published.sent:
                self._store.confirm(published.sent)
            self._refuse(published.refused)
            if published.unsent:
                rest = [job.id for job in jobs[first + STEP :]]
                self._store.give_back([*published.unsent, *rest])
                return

    def _refuse(self, refused: Sequence[tuple[uuid.UUID, str]]) -> None:
        if refused:
            for job in self._store.refuse(refused):
                logger.error("Lost job %s: it cannot be sent", job, extra={"action": "refuse"})

    def _judge(self) -> bool:
        """Decide about silent jobs; tell whether there were any."""
        verdicts = self._store.judge(self._settings.batch, self.resending)
        for verdict in verdicts:
            logger.warning(
                "Recovered job %s of %r, silent for too long: %s",
                verdict.id,
                verdict.periodic_task,
                verdict.verdict,
                extra={"action": "recover"},
            )
        return bool(verdicts)


def _problem(name: str, error: Exception) -> str:
    """Return the words for the row's `problem`, and log them once: a row with a problem is not looked at again."""
    if isinstance(error, InvalidSchedule):
        logger.error("Cannot plan %r: %s", name, error, extra={"action": "plan"})
        return str(error)
    logger.error("Cannot plan %r", name, exc_info=error, extra={"action": "plan"})
    return f"{type(error).__name__}: {error}"


def _log(decision: Decision, answer: Submitted) -> None:
    name = decision.row.name
    if answer.lost is not None:
        logger.warning("Lost job %s of %r: it was silent for too long", answer.lost, name, extra={"action": "recover"})
    if decision.job is not None and not answer.made and decision.scheduled_for is not None:
        logger.info(
            "Skipped %r for %s: job %s is not final",
            name,
            decision.scheduled_for.isoformat(),
            answer.blocked_by,
            extra={"action": "skip"},
        )
    if decision.passed is not None:
        logger.info(
            "Skipped %r: %d occurrences up to %s, %s",
            name,
            decision.passed.count,
            decision.passed.last.isoformat(),
            decision.passed.reason,
            extra={"action": "skip"},
        )
