"""Lets each job start once.

A job is one row in Postgres and usually one message at the broker. A second message with the same task id is made by a
beat that died between publish and confirm, a broker that redelivers, a pickup deadline that passed, or an operator
that puts a message back into its queue. So the messages do not decide. Before the body of a task runs, the process that
has a copy of the message tries one conditional UPDATE of the row (`start.sql`), which succeeds for one of the copies.

`docs/states.md` draws the states of a job and names the statement of every transition.

What the row compares
---------------------
- `task`: the task that the row calls. A message of another task under the job's id, which only a person with access to
  the broker can have written, is dropped and changes nothing.
- `run`: one more with each rerun. A message of an earlier run starts nothing.
- `attempt`: Celery's `retries`. Celery publishes a retry before we can write `retrying`, so a *higher* attempt starts
  although the row is running; an equal one only if the row neither runs nor waits (`buffered`, `waiting`); a lower one
  never.
- `token`: random for each start, made in the main process. If the connection is lost after the commit, the start is
  repeated with the same token and succeeds again. If the row has another token, each later report of a start (finish,
  retry, heartbeat) changes nothing. A row without a token accepts those whose attempt is not lower than its own: a
  failover may have set the row back to before the start. A heartbeat restores no row whose message went back.
- `stop_request`: a job with one (`stop_requests.py`) makes no further attempt. If it fails or retries, or if its
  message goes back, it is revoked. If it succeeds all the same, it is `succeeded`. If its process dies, it is lost.
- `min_gap`: a job with one is started by a statement of its own (`start_spaced.sql`), which reads the last start of the
  name and drops a first attempt that comes too early. It costs all other jobs nothing.

Where the guard runs
--------------------
Celery runs a task through a tracer, one closure a task. When the tracer is built, it decides what it will call:
`task.run`, or the task itself if its class has a `__call__` (in a worker every class has one: Celery's own protected
one). Before either of them, inside the same try-block, it calls `task.before_start` if the task's *class* has one.

The guard is a `before_start` on the class of each registered task. So it runs before `run`, before a custom `__call__`,
before the user's own `before_start`, and outside autoretry. A direct `task()` or `task.run()` does not call it. If it
raises `Ignore`, the tracer acknowledges the message and stores no result and no failure.

Nothing else works: a handler of `task_prerun` cannot refuse, because its exceptions are logged and the task runs.
`Reject` stores FAILURE. A tracer that is older than the guard is built again; tasks that were registered late are
guarded when a pool process starts, or when their first message arrives.

The result backend
------------------
The tracer stores STARTED before it calls anything, so a dropped copy of a job that had succeeded would leave it STARTED
forever. So the guard turns `track_started` off and stores STARTED itself: for a job after its start succeeded, for
every other message at once.

Without Postgres
----------------
If Postgres is out of reach, the guard tries again for `START_TIMEOUT` and then does what `pgbeat_guard_error` says:
`run` (probably nothing else has started the job, but it is not certain) or `refuse` (a beat sends the job again: after
its pickup deadline, or as soon as the worker has reported the refusal, if the start was committed all the same). Both
are logged; a job is never dropped silently.
"""

from __future__ import annotations

import enum
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from celery import states
from celery.app.trace import build_tracer
from celery.exceptions import Ignore
from sqlalchemy.exc import SQLAlchemyError

from celery_pgbeat.declare.options import LONGEST
from celery_pgbeat.errors import DatabaseUnavailable, PgBeatError
from celery_pgbeat.postgres.worker_queries import (
    JobState,
    MessageCopy,
    MinGapViolation,
    Start,
    Unstarted,
    WorkerQueries,
)
from celery_pgbeat.texts.redaction import MASKED
from celery_pgbeat.worker.context import WorkerContext
from celery_pgbeat.worker.report.reports import Requeue
from celery_pgbeat.worker.start.admission import Admission, admission_of, admit
from celery_pgbeat.worker.start.message import assigned_start, copy_of, header_of, is_sensitive, is_untracked
from celery_pgbeat.worker.stop.running import Running

START_TIMEOUT = 10.0  # seconds that a start waits for Postgres before pgbeat_guard_error decides
WITHOUT_HEARTBEAT = timedelta(days=1)  # how long a start without heartbeats counts as alive, if it has no time limit
GUARD = "_pgbeat_guard"  # on a task: its guard

Result = TypeVar("Result")
logger = logging.getLogger(__name__)


class StartResult(enum.Enum):
    """What the row decided about a copy of its job's message."""

    STARTED = enum.auto()
    UNTRACKED = enum.auto()  # `tracking = send`: nothing decides about its starts, so it runs
    DUPLICATE = enum.auto()
    WITHDRAWN = enum.auto()  # it had a stop request before it ran
    FOREIGN = enum.auto()  # a message of another task under the id of the job
    TOO_EARLY = enum.auto()  # within the min_gap of its periodic task
    UNKNOWN = enum.auto()
    REFUSED = enum.auto()  # Postgres is out of reach, and pgbeat_guard_error = refuse


def guard(task: Any, context: WorkerContext) -> None:
    """Install a guard on a task that has none."""
    if GUARD in vars(task):
        return
    setattr(task, GUARD, Guard(context, track_started=bool(task.track_started)))
    task.track_started = False
    _mask_retries(task)
    _guard_class(type(task))
    if task.__trace__ is not None:
        task.__trace__ = build_tracer(task.name, task, context.app.loader, app=context.app)


def _mask_retries(task: Any) -> None:
    """Keep the arguments of a sensitive job out of the messages of its retries, where Celery would show them again.

    Celery makes these messages in the process that ran the task, and in the main process if that one was lost.
    """
    own = task.signature_from_request

    def signature_from_request(request: Any = None, *args: Any, **options: Any) -> Any:
        fields = vars(task.request if request is None else request)
        return own(request, *args, **(MASKED if is_sensitive(fields) else {}), **options)

    task.signature_from_request = signature_from_request


def _guard_class(cls: Any) -> None:
    own = next(vars(base)["before_start"] for base in cls.__mro__ if "before_start" in vars(base))
    if getattr(own, "is_guarded", False):
        return

    def before_start(self: Any, task_id: str, args: Any, kwargs: Any) -> Any:
        # The class may be shared with tasks that are not guarded, of another app for instance.
        guard = vars(self).get(GUARD)
        request = self.request_stack.top
        # If a before_start calls that of its parent class, this runs twice; the first call counts.
        if guard is not None and request is not None and admission_of(request) is None:
            guard.admit(self, request)
        return own.__get__(self, type(self))(task_id, args, kwargs)

    before_start.is_guarded = True  # type: ignore[attr-defined]
    cls.before_start = before_start


class Guard:
    """Decides about each message of one task, in every process of a worker."""

    def __init__(self, context: WorkerContext, track_started: bool) -> None:
        self._context = context
        self._track_started = track_started

    def admit(self, task: Any, request: Any) -> None:
        """Return if the task's body may run, else raise Ignore; note on the request whether it is a job's start."""
        fields = vars(request)
        copy = None if request.is_eager else copy_of(fields)
        # A note on the request that the guard has seen it. Because of it `before_start` does not call the guard again,
        # and the tracker reports the start that the note has.
        admission = admit(request)
        if copy is not None:
            self._admit_job(task, request, copy, admission)
        if self._track_started and not request.is_eager and not _ignores_result(task, fields):
            meta = {"pid": os.getpid(), "hostname": request.hostname}
            task.backend.store_result(request.id, meta, states.STARTED, request=request)

    def _admit_job(self, task: Any, request: Any, copy: MessageCopy, admission: Admission) -> None:
        if self._context.job_span is not None:
            self._context.job_span.describe(header_of(vars(request)))
        untracked = is_untracked(vars(request))
        if not self._context.settings.allows(task.name):
            self._refuse_task(task, assigned_start(vars(request), copy) or copy, untracked)
        if untracked:
            return
        start = assigned_start(vars(request), copy)
        dead_after = self._context.settings.dead_after
        if start is None:
            start, dead_after = self._start_without_token(vars(request), copy)
        # From here on the tracker reports it: a time limit that ends the wait below must not leave the row running.
        admission.start = start
        try:
            result = retry_until_deadline(
                lambda: start_job(self._context.connection.checked_queries(), start, dead_after)
            )
        except (PgBeatError, SQLAlchemyError) as error:
            result = self._result_without_postgres(task, start, error)
        if result is not StartResult.STARTED:
            admission.start = None
        if result not in (StartResult.STARTED, StartResult.UNTRACKED):
            if self._context.job_span is not None:
                self._context.job_span.drop(result.name.lower())
            raise Ignore(f"celery-pgbeat: {result.name.lower()} message of job {copy.job}")
        if result is StartResult.STARTED:
            admission.running = self._begin(vars(request), start)

    def _begin(self, fields: Mapping[str, Any], start: Start) -> Running:
        """Note the job as running here; in a pool process, handle the stop signal for it."""
        seconds = (fields.get("timelimit") or (None, None))[1]
        soft_limit = None if seconds is None else _duration(seconds)
        running = Running(start, header_of(fields), soft_limit, self._context)
        if not self._context.is_main:
            self._context.stop_signal.enter(running)
        return running

    def _refuse_task(self, task: Any, copy: MessageCopy, untracked: bool) -> None:
        logger.error(
            "Job %s is not run: pgbeat_allowed_tasks does not allow the task %r",
            copy.job,
            task.name,
            extra={"action": "skip"},
        )
        if not untracked:
            error = f"pgbeat_allowed_tasks does not allow {task.name!r}"
            self._context.report(Unstarted(copy, "skipped", str(self._context.node), reason="not_allowed", error=error))
        if self._context.job_span is not None:
            self._context.job_span.drop("not_allowed")
        raise Ignore("celery-pgbeat: not an allowed task")

    def _start_without_token(self, fields: Mapping[str, Any], copy: MessageCopy) -> tuple[Start, timedelta]:
        """Make a start that the main process does not know, so that it sends no heartbeat for it.

        For such a start a missing heartbeat means nothing: it counts as alive for as long as it may run.
        """
        hard_limit = (fields.get("timelimit") or (None, None))[0]
        dead_after = _duration(hard_limit) + timedelta(seconds=30) if hard_limit else WITHOUT_HEARTBEAT
        start = Start(copy.job, copy.run, copy.attempt, uuid.uuid4(), str(self._context.node), task=copy.task)
        logger.warning(
            "Job %s reached its process without the worker's main process: no heartbeat, it counts as alive for %s",
            copy.job,
            dead_after,
        )
        return start, dead_after

    def _result_without_postgres(self, task: Any, start: Start, error: Exception) -> StartResult:
        if self._context.settings.guard_error == "refuse":
            logger.error(
                "Job %s of %r is not run now, it will be sent again (pgbeat_guard_error = 'refuse'): %s",
                start.job,
                task.name,
                error,
                extra={"action": "refuse"},
            )
            # If the start was committed after all, or a heartbeat restored it, its row must wait again. `put` only
            # queues the report in this process: `report` would try to write it now, and Postgres is out of reach.
            self._context.put(Requeue(start, "refused: Postgres was out of reach", resend=True))
            return StartResult.REFUSED
        logger.error(
            "Job %s of %r runs unguarded (pgbeat_guard_error = 'run'): %s",
            start.job,
            task.name,
            error,
            extra={"action": "run"},
        )
        return StartResult.STARTED


def start_job(queries: WorkerQueries, start: Start, dead_after: timedelta) -> StartResult:
    """Start a job if its row allows it; return what the row decided.

    Raises:
        DatabaseUnavailable: Postgres is out of reach; try again with the same start, even if it was committed.
    """
    if queries.start(start, dead_after):
        return StartResult.STARTED
    known = queries.state_of(start.job)
    if known is None:
        logger.warning(
            "Job %s is unknown (pruned, or lost in a failover): its message is not run",
            start.job,
            extra={"action": "drop"},
        )
        return StartResult.UNKNOWN
    if start.task not in (None, known.task):
        logger.error(
            "A message of the task %r has the id of job %s, whose task is %r: it is not run, and the job still waits",
            start.task,
            start.job,
            known.task,
            extra={"action": "drop"},
        )
        return StartResult.FOREIGN
    return _start_known_job(queries, start, dead_after, known)


def _start_known_job(queries: WorkerQueries, start: Start, dead_after: timedelta, known: JobState) -> StartResult:
    if known.untracked:
        return StartResult.UNTRACKED
    if known.final:
        return _start_final_job(queries, start, dead_after, known)
    if known.stop_request is not None and known.state != "running":
        return _withdraw(queries, start, known.stop_request)
    if known.spaced:
        return _start_spaced_job(queries, start, dead_after, known)
    return _duplicate(start, known)


def _start_final_job(queries: WorkerQueries, start: Start, dead_after: timedelta, known: JobState) -> StartResult:
    if known.state == "lost" and queries.start_lost(start, dead_after):
        logger.info("Job %s, given up as lost, starts after all", start.job, extra={"action": "start"})
        return StartResult.STARTED
    return _duplicate(start, known)


def _withdraw(queries: WorkerQueries, start: Start, stop_request: str) -> StartResult:
    """End a job that has a stop request and does not run: nothing else ends it before its deadline.

    A submit requests a stop only of running jobs, but a failover may have lost the commit of the start.
    """
    queries.end_unstarted(start, "revoked", start.worker, error=f"asked to {stop_request} before it ran")
    logger.info("Job %s was asked to stop before it ran: revoked", start.job, extra={"action": "drop"})
    return StartResult.WITHDRAWN


def _start_spaced_job(queries: WorkerQueries, start: Start, dead_after: timedelta, known: JobState) -> StartResult:
    result = queries.start_spaced(start, dead_after)
    if isinstance(result, MinGapViolation):
        logger.info(
            "Job %s of %r is dropped: less than its min_gap of %s since the last start",
            start.job,
            result.periodic_task,
            result.min_gap,
            extra={"action": "skip"},
        )
        return StartResult.TOO_EARLY
    if result:
        return StartResult.STARTED
    return _duplicate(start, known)


def _duplicate(start: Start, known: JobState) -> StartResult:
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
    return StartResult.DUPLICATE


def retry_until_deadline(statement: Callable[[], Result]) -> Result:
    """Try until Postgres is there, with growing pauses; raise DatabaseUnavailable after `START_TIMEOUT`."""
    give_up_at = time.monotonic() + START_TIMEOUT
    pause = 0.1
    while True:
        try:
            return statement()
        except DatabaseUnavailable:
            if time.monotonic() + pause > give_up_at:
                raise
            time.sleep(pause)
            pause = min(2.0, pause * 2)


def _duration(limit: float) -> timedelta:
    """Return a time limit as a timedelta, cut to the longest one that we allow: a message may have any number."""
    return timedelta(seconds=min(limit, LONGEST))


def _ignores_result(task: Any, fields: Mapping[str, Any]) -> bool:
    of_message = fields.get("ignore_result")
    return bool(task.ignore_result if of_message is None else of_message)
