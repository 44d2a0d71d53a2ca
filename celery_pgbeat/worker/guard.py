"""Lets each job start once.

A job is one row in Postgres and one message at the broker, mostly. A beat that died between publishing and
confirming, a broker that redelivers, a pickup deadline that passed, an operator who requeues: each of them
makes a second message with the same task id. So the messages do not decide. Before the body of a task runs,
whoever holds a copy of its message asks the row, with one conditional UPDATE (`start.sql`), and the row says
yes to one of them:

                      requeue, rerun (run + 1)
              ┌───────────────────────────────────────┐
              ▼                                       │
    pending, sent ───────────── start ────────────► running ──── finish ────► succeeded, failed, revoked
              │                                     ▲  │  │
              │               start (attempt + 1)   │  │  └─── lose, silence ─► lost
              │             ┌───────────────────────┘  │
              │             │                          │
              │          retrying ◄───── retry ────────┘
              │             │
              ├─────────────┴──── end_unstarted ─────► revoked, expired, failed, skipped (not_allowed)
              └──────────────────  start_spaced ─────► skipped (min_gap)

    lost, and never started ───── start_late ────────► running

What the row compares:

- `task`: what the row calls. A message of another task under the job's id, which only somebody at the broker can have
  written, is dropped and changes nothing.
- `run`: raised by each rerun. A message of an earlier run starts nothing.
- `attempt`: Celery's `retries`. It publishes a retry before anybody can write `retrying`, so a *higher* attempt
  starts although the row says running; an equal one only if the row does not run; a lower one never.
- `token`: random for each start, made in the main process. The answer to a start that was committed may be
  lost with the connection; who asks again with the same token hears yes again. And whatever a start says
  later (finish, retry, heartbeat) holds only while the row bears its token.
- `stop_request`: a job with one (`stop_requests.py`) makes no further attempt. One that fails, wants a retry or whose
  message goes back is revoked; one that succeeds all the same has succeeded; one whose process dies is lost.
- `min_gap`: what has one is started by a statement of its own (`start_spaced.sql`), which looks at the last start of
  the name and drops a first attempt that comes too early. All others pay nothing for it.

Where the guard stands. Celery runs a task through a tracer, one closure a task, which decides when it is built
what it will call: `task.run`, or the task itself where its class has a `__call__` (in a worker every class has:
Celery's own protected one); and before either of them, inside the same try-block, `task.before_start` where its
*class* has one. The guard is a `before_start` on the class of each registered task. So it stands before `run`,
before a custom `__call__`, before the user's own `before_start`, and outside autoretry; it is never met by
`task()` and `task.run()`; and `Ignore` raised in it means to the tracer: acknowledged, nothing stored, no
failure. (A handler of `task_prerun` cannot veto: its exceptions are logged and the task runs. `Reject` stores
FAILURE.) A tracer that is older than the guard is built again; tasks that were registered late are guarded when
a pool process starts, or when their first message arrives.

The result backend. The tracer stores STARTED before it calls anything, so a dropped copy of a job that had
succeeded would leave it STARTED for ever. `track_started` is therefore turned off on guarded tasks, and the
guard stores STARTED itself: for our jobs once they have won the start, for everything else at once.

When Postgres is out of reach the guard asks again for `PATIENCE` and then does what `pgbeat_guard_error` says:
`run` (nothing else may have started it, but nobody knows) or `refuse` (a beat sends it again after its pickup
deadline). Both are logged; a job is never dropped silently.
"""

from __future__ import annotations

import enum
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from celery import states
from celery.app.trace import build_tracer
from celery.exceptions import Ignore
from sqlalchemy.exc import SQLAlchemyError

from celery_pgbeat.declare.options import LONGEST
from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError
from celery_pgbeat.postgres.worker_queries import JobState, MessageCopy, MinGapViolation, Start, WorkerQueries
from celery_pgbeat.redaction import MASKED
from celery_pgbeat.worker.admission import Admission, admission_of, admit
from celery_pgbeat.worker.context import WorkerContext
from celery_pgbeat.worker.message import assigned_start, copy_of, header_of, is_sensitive
from celery_pgbeat.worker.running import Running

PATIENCE = 10.0  # seconds that a start waits for Postgres before pgbeat_guard_error decides
UNHEARD = timedelta(days=1)  # how long a start that nobody heartbeats for is believed, if it has no time limit
GUARD = "_pgbeat_guard"  # on a task: its guard

Answer = TypeVar("Answer")
logger = logging.getLogger(__name__)


class StartResult(enum.Enum):
    """What the row said to a copy of its job's message."""

    STARTED = enum.auto()
    UNTRACKED = enum.auto()  # `tracking = send`: nobody keeps count, so it runs
    DUPLICATE = enum.auto()
    WITHDRAWN = enum.auto()  # asked to end while it did not run
    FOREIGN = enum.auto()  # a message of another task under the id of the job
    TOO_EARLY = enum.auto()  # within the min_gap of its periodic task
    UNKNOWN = enum.auto()
    REFUSED = enum.auto()  # no answer, and pgbeat_guard_error = refuse


def guard(task: Any, context: WorkerContext) -> None:
    """Put a guard before a task, unless it has one."""
    if GUARD in vars(task):
        return
    setattr(task, GUARD, Guard(context, track_started=bool(task.track_started)))
    task.track_started = False
    _mask_retries(task)
    _stand_in_class(type(task))
    if task.__trace__ is not None:
        task.__trace__ = build_tracer(task.name, task, context.app.loader, app=context.app)


def _mask_retries(task: Any) -> None:
    """Have the messages of a sensitive job's retries show no arguments: Celery would write them there anew.

    It makes them here, in the process that ran the task, and in the main process when that one was lost.
    """
    own = task.signature_from_request

    def signature_from_request(request: Any = None, *args: Any, **options: Any) -> Any:
        fields = vars(task.request if request is None else request)
        return own(request, *args, **(MASKED if is_sensitive(fields) else {}), **options)

    task.signature_from_request = signature_from_request


def _stand_in_class(cls: Any) -> None:
    own = next(vars(base)["before_start"] for base in cls.__mro__ if "before_start" in vars(base))
    if getattr(own, "stands_guard", False):
        return

    def before_start(self: Any, task_id: str, args: Any, kwargs: Any) -> Any:
        # The class may be shared with tasks that are not guarded, of another app for instance.
        guard = vars(self).get(GUARD)
        request = self.request_stack.top
        # A before_start that calls its parent's meets the guard twice; the first time counts.
        if guard is not None and request is not None and admission_of(request) is None:
            guard.admit(self, request)
        return own.__get__(self, type(self))(task_id, args, kwargs)

    before_start.stands_guard = True  # type: ignore[attr-defined]
    cls.before_start = before_start


class Guard:
    """Stands before one task in every process of a worker."""

    def __init__(self, context: WorkerContext, track_started: bool) -> None:
        self._context = context
        self._track_started = track_started

    def admit(self, task: Any, request: Any) -> None:
        """Let the task's body run, or raise Ignore: the request's context says whether it was a job's start."""
        fields = vars(request)
        copy = None if request.is_eager else copy_of(fields)
        admission = admit(request)
        if copy is not None:
            self._admit_job(task, request, copy, admission)
        if self._track_started and not request.is_eager and not _ignores_result(task, fields):
            meta = {"pid": os.getpid(), "hostname": request.hostname}
            task.backend.store_result(request.id, meta, states.STARTED, request=request)

    def _admit_job(self, task: Any, request: Any, copy: MessageCopy, admission: Admission) -> None:
        if self._context.job_span is not None:
            self._context.job_span.describe(header_of(vars(request)))
        if not self._context.settings.allows(task.name):
            self._turn_away(task, copy)
        start = assigned_start(vars(request), copy)
        silence = self._context.settings.dead_after
        if start is None:
            start, silence = self._start_of_our_own(vars(request), copy)
        # The tracker knows of it from here on: a time limit that strikes while we wait must not leave the row running.
        admission.start = start
        try:
            verdict = retry_until_deadline(
                lambda: start_job(self._context.connection.checked_reports(), start, silence)
            )
        except (PgBeatError, SQLAlchemyError) as error:
            verdict = self._verdict_without_postgres(task, start, error)
        if verdict is not StartResult.STARTED:
            admission.start = None
        if verdict not in (StartResult.STARTED, StartResult.UNTRACKED):
            if self._context.job_span is not None:
                self._context.job_span.drop(verdict.name.lower())
            raise Ignore(f"celery-pgbeat: {verdict.name.lower()} message of job {copy.job}")
        if verdict is StartResult.STARTED:
            admission.running = self._attend(vars(request), start)

    def _attend(self, fields: Mapping[str, Any], start: Start) -> Running:
        """Know the job as running here from now on; in a pool process, listen for what it is asked."""
        soft_limit = (fields.get("timelimit") or (None, None))[1]
        timebox = None if soft_limit is None else _span(soft_limit)
        running = Running(start, header_of(fields), timebox, self._context)
        if not self._context.is_main:
            self._context.stop_signal.enter(running)
        return running

    def _turn_away(self, task: Any, copy: MessageCopy) -> None:
        logger.error(
            "Job %s is not run: pgbeat_allowed_tasks does not allow the task %r",
            copy.job,
            task.name,
            extra={"action": "skip"},
        )
        report = partial(
            WorkerQueries.end_unstarted,
            copy=copy,
            state="skipped",
            worker=str(self._context.node),
            reason="not_allowed",
            error=f"pgbeat_allowed_tasks does not allow {task.name!r}",
        )
        self._context.deliver(report, copy.job)
        if self._context.job_span is not None:
            self._context.job_span.drop("not_allowed")
        raise Ignore("celery-pgbeat: not an allowed task")

    def _start_of_our_own(self, fields: Mapping[str, Any], copy: MessageCopy) -> tuple[Start, timedelta]:
        """Make a start whose main process does not know it, and so will not heartbeat for it.

        Its silence means nothing then: it is believed for as long as it may run.
        """
        hard_limit = (fields.get("timelimit") or (None, None))[0]
        silence = _span(hard_limit) + timedelta(seconds=30) if hard_limit else UNHEARD
        start = Start(copy.job, copy.run, copy.attempt, uuid.uuid4(), str(self._context.node), task=copy.task)
        logger.warning(
            "Job %s reached its process past the worker's own reception: no heartbeat, believed for %s",
            copy.job,
            silence,
        )
        return start, silence

    def _verdict_without_postgres(self, task: Any, start: Start, error: Exception) -> StartResult:
        if self._context.settings.guard_error == "refuse":
            logger.error(
                "Job %s of %r is not run now, it will be sent again (pgbeat_guard_error = 'refuse'): %s",
                start.job,
                task.name,
                error,
                extra={"action": "refuse"},
            )
            # If the start was heard after all, or the heartbeat spoke for it, its row must wait again.
            report = partial(
                WorkerQueries.requeue, start=start, error="refused: Postgres was out of reach", resend=True
            )
            self._context.connection.report_thread.put(report, start.job)
            return StartResult.REFUSED
        logger.error(
            "Job %s of %r runs unguarded (pgbeat_guard_error = 'run'): %s",
            start.job,
            task.name,
            error,
            extra={"action": "run"},
        )
        return StartResult.STARTED


def start_job(reports: WorkerQueries, start: Start, silence: timedelta) -> StartResult:
    """Ask the row whether this start may run.

    Raises:
        DatabaseUnavailable: no answer; asking again with the same start is right, even if it was heard.
    """
    if reports.start(start, silence):
        return StartResult.STARTED
    known = reports.state_of(start.job)
    if known is None:
        logger.warning(
            "Nobody knows job %s (pruned, or lost in a failover): its message is not run",
            start.job,
            extra={"action": "drop"},
        )
        return StartResult.UNKNOWN
    if start.task not in (None, known.task):
        _log_foreign(start, known)
        return StartResult.FOREIGN
    return _start_known_job(reports, start, silence, known)


def _start_known_job(reports: WorkerQueries, start: Start, silence: timedelta, known: JobState) -> StartResult:
    if known.final:
        return _start_final_job(reports, start, silence, known)
    if known.stop_request is not None and known.state != "running":
        return _withdraw(reports, start, known.stop_request)
    if known.spaced:
        return _start_spaced_job(reports, start, silence, known)
    _log_duplicate(start, known)
    return StartResult.DUPLICATE


def _start_final_job(reports: WorkerQueries, start: Start, silence: timedelta, known: JobState) -> StartResult:
    if known.state == "untracked":
        return StartResult.UNTRACKED
    if known.state == "lost" and reports.start_late(start, silence):
        logger.info("Job %s, given up for lost, starts after all", start.job, extra={"action": "start"})
        return StartResult.STARTED
    _log_duplicate(start, known)
    return StartResult.DUPLICATE


def _withdraw(reports: WorkerQueries, start: Start, ask: str) -> StartResult:
    """End a job that does not run and was asked to end: nothing else would before its time is over.

    A submit asks only what runs, but a failover may have lost the commit of that start.
    """
    reports.end_unstarted(start, "revoked", start.worker, error=f"asked to {ask} before it ran")
    logger.info("Job %s was asked to end before it ran: revoked", start.job, extra={"action": "drop"})
    return StartResult.WITHDRAWN


def _start_spaced_job(reports: WorkerQueries, start: Start, silence: timedelta, known: JobState) -> StartResult:
    answer = reports.start_spaced(start, silence)
    if isinstance(answer, MinGapViolation):
        logger.info(
            "Job %s of %r is dropped: less than its min_gap of %s since the last start",
            start.job,
            answer.periodic_task,
            answer.min_gap,
            extra={"action": "skip"},
        )
        return StartResult.TOO_EARLY
    if answer:
        return StartResult.STARTED
    _log_duplicate(start, known)
    return StartResult.DUPLICATE


def _log_duplicate(start: Start, known: JobState) -> None:
    logger.info(
        "A second message of job %s (run %d, attempt %d) is dropped: the job is %s (run %d, attempt %d)",
        start.job,
        start.run,
        start.attempt,
        known.state,
        known.run,
        known.attempt,
        extra={"action": "drop"},
    )


def _log_foreign(start: Start, known: JobState) -> None:
    logger.error(
        "A message of the task %r bears the id of job %s, whose task is %r: it is not run, and the job waits on",
        start.task,
        start.job,
        known.task,
        extra={"action": "drop"},
    )


def retry_until_deadline(question: Callable[[], Answer]) -> Answer:
    """Ask until Postgres answers, with growing pauses; the last DatabaseUnavailable passes after `PATIENCE`."""
    give_up_at = time.monotonic() + PATIENCE
    pause = 0.1
    while True:
        try:
            return question()
        except DatabaseUnavailable:
            if time.monotonic() + pause > give_up_at:
                raise
            time.sleep(pause)
            pause = min(2.0, pause * 2)


def _span(limit: float) -> timedelta:
    """Return a time limit as a span; a message may have one beyond all calendars."""
    return timedelta(seconds=min(limit, LONGEST))


def _ignores_result(task: Any, fields: Mapping[str, Any]) -> bool:
    asked = fields.get("ignore_result")
    return bool(task.ignore_result if asked is None else asked)
