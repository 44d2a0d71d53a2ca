"""What became of a start whose own process cannot say: told by the worker's main process.

A child that was killed, a hard time limit, a message that was revoked, expired or unknown. Everything here runs
in the thread that consumes messages, so it only puts a report into the queue of the report thread.

Which report holds is decided by the row, not here: the first final state stands, but `revoked` overrules a
`failed` of the same start, because a terminated child may unwind and fail before its parent can speak.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from sqlalchemy.exc import SQLAlchemyError

from celery_pgbeat.postgres.worker_queries import Start, Unstarted, WorkerQueries
from celery_pgbeat.worker.admission import admission_of
from celery_pgbeat.worker.context import WorkerContext, context_of
from celery_pgbeat.worker.guard import guard
from celery_pgbeat.worker.message import assign_token, assigned_start, copy_of, is_sensitive
from celery_pgbeat.worker.refusals import is_kept
from celery_pgbeat.worker.stop_requests import has_processes, revoke
from celery_pgbeat.worker.tracker import delay_of, error_text, stored

logger = logging.getLogger(__name__)


def on_received(sender: Any, request: Any, **_: Any) -> None:
    """Entrust a job's message with the token of the start that it will try."""
    context = main_context_of(sender.app)
    if context is None:
        return
    start = assign_token(request, str(context.node))
    if start is None:
        return
    context.received_jobs.add(request, start)
    guard(request.task, context)
    if has_processes(sender.pool):  # the only ones that die
        request.on_reject = returning(context, start, request.on_reject, sender)


def returning(context: WorkerContext, start: Start, reject: Callable[..., Any], consumer: Any) -> Callable[..., Any]:
    """Let a message go back to the broker only once its row waits for it.

    Celery tells nobody when it requeues the message of a lost child. A copy that came back before the row
    knew would find its job running, and be dropped as a second one.

    The report thread writes the row; the thread that consumes messages answers the broker, because a
    broker's channel is one thread's own.
    """

    def on_reject(log: Any, connection_errors: Any, requeue: bool) -> Any:
        if not requeue:
            return reject(log, connection_errors, requeue)

        def send_back() -> None:
            try:
                reject(log, connection_errors, requeue)
            except Exception:  # what is raised here would end the worker's event loop
                logger.exception("The message of job %s could not be sent back", start.job)

        def give_back(reports: WorkerQueries) -> None:
            try:
                reports.requeue(start, "its process was lost, its message went back to the broker")
            except SQLAlchemyError as error:
                if is_kept(error):
                    raise  # the message stays with this worker meanwhile, and goes back when the worker ends
                logger.exception("Job %s could not be requeued", start.job)
            consumer.call_soon(send_back)

        return context.connection.report_thread.put(give_back, start.job)

    return on_reject


def on_failure(sender: Any, task_id: str, exception: Any = None, **_: Any) -> None:
    """Report a child that died, or was killed by its hard time limit."""
    context = main_context_of(sender.app)
    if context is None or _is_told_by_tracker(sender.request_stack.top):
        return
    for start in context.received_jobs.of(task_id):
        if isinstance(exception, WorkerLostError):
            context.connection.report_thread.put(
                partial(WorkerQueries.lose, start=start, error=error_text(exception)), start.job
            )
        elif isinstance(exception, TimeLimitExceeded):
            error = f"TimeLimitExceeded: it ran for more than {exception.args[0]} s"
            context.connection.report_thread.put(
                partial(WorkerQueries.finish, start=start, state="failed", error=error), start.job
            )


def on_revoked(sender: Any, request: Any, terminated: bool, signum: Any, expired: bool, **_: Any) -> None:
    """Report a message that was revoked or had expired, or a start that was terminated."""
    context = main_context_of(sender.app)
    copy = copy_of(vars(request))
    if context is None or copy is None:
        return
    start = assigned_start(vars(request), copy)
    if terminated and start is not None and context.is_ending(start):
        return  # told by the asks, once its process is gone
    if terminated and start is not None:
        context.connection.report_thread.put(
            partial(revoke, start=start, error=f"terminated by signal {signum}"), start.job
        )
    else:
        state = "expired" if expired else "revoked"
        context.connection.report_thread.put(Unstarted(copy, state, str(context.node)), copy.job)


def on_retry(sender: Any, request: Any, reason: Any = None, **_: Any) -> None:
    """Report a start that the main process itself retries after its child died, or cancelled.

    Celery cancels what it could not acknowledge when it lost the broker: the message comes back by itself, maybe
    before this report. Cancelled for a shutdown after an early acknowledgement, nothing comes back.
    """
    context = main_context_of(sender.app)
    copy = copy_of(vars(request))
    if context is None or copy is None or _is_told_by_tracker(request):
        return
    start = assigned_start(vars(request), copy)
    if start is None:
        return
    put = context.connection.report_thread.put
    if reason is not None:
        error = error_text(reason.exc, is_sensitive(vars(request)))
        put(partial(WorkerQueries.retry, start=start, delay=delay_of(reason.when, context.app), error=error), start.job)
    elif sender.acks_late:
        put(partial(WorkerQueries.requeue, start=start, error="cancelled, the broker was lost", resend=True), start.job)
    else:
        put(partial(WorkerQueries.lose, start=start, error="cancelled, its worker was shut down"), start.job)


def on_unknown(sender: Any, message: Any, name: str, **_: Any) -> None:
    """Report a message whose task this worker does not have."""
    _fail_unstarted(sender.app, message, stored(f"NotRegistered: no task is named {name!r} at this worker"))


def on_rejected(sender: Any, message: Any, exc: Any = None, **_: Any) -> None:
    """Report a message that this worker cannot make sense of."""
    _fail_unstarted(sender.app, message, error_text(exc, is_sensitive(message.headers or {})))


def _fail_unstarted(app: Any, message: Any, error: str) -> None:
    context = main_context_of(app)
    copy = copy_of(message.headers or {})
    if context is not None and copy is not None:
        context.connection.report_thread.put(Unstarted(copy, "failed", str(context.node), error=error), copy.job)


def main_context_of(app: Any) -> WorkerContext | None:
    """Return the app's context where this is a worker's main process."""
    context = context_of(app)
    return context if context is not None and context.is_main else None


def _is_told_by_tracker(request: Any) -> bool:
    """Whether a signal came from the tracer itself, in a pool without processes: the run goes on, the tracker tells."""
    return admission_of(request) is not None
