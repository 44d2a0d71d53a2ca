"""The signal handlers of a worker's main process: they report a run whose own process cannot report it.

A child that was killed, a hard time limit, a message that was revoked, expired or unknown. The handlers run in the
thread that consumes messages, so they only queue reports.

The row decides which report counts: the first final state stays, but `revoked` overrules a `failed` of the same start,
because a terminated child may unwind and report its failure first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from billiard.exceptions import TimeLimitExceeded, WorkerLostError

from celery_pgbeat.postgres.worker_queries import Start, Unstarted
from celery_pgbeat.worker.context import WorkerContext, context_of
from celery_pgbeat.worker.report.pool_watch import has_processes
from celery_pgbeat.worker.report.reports import Killed, Lost, Requeue, Retry
from celery_pgbeat.worker.report.tracker import delay_of, error_text, stored
from celery_pgbeat.worker.start.admission import admission_of
from celery_pgbeat.worker.start.guard import guard
from celery_pgbeat.worker.start.message import assign_token, assigned_start, copy_of, is_sensitive, tracked_copy_of

logger = logging.getLogger(__name__)


def on_received(sender: Any, request: Any, **_: Any) -> None:
    """Assign the token of the start that a job's message will try."""
    context = main_context_of(sender.app)
    if context is None:
        return
    guard(request.task, context)
    start = assign_token(request, str(context.node))
    if start is None:
        return
    context.received_jobs.add(request, start)
    if has_processes(sender.pool):  # in other pools no process can be lost
        request.on_reject = requeue_first(context, start, request.on_reject, sender)


def requeue_first(
    context: WorkerContext, start: Start, reject: Callable[..., Any], consumer: Any
) -> Callable[..., Any]:
    """Return a `reject` that gives a message back to the broker only after that is written in the job's row.

    Celery sends no signal when it requeues the message of a lost child. If the message came back before the row is
    written, the guard would find the job running, and drop the message as a second copy.

    The report thread writes the row; the thread that consumes messages calls the broker, because only one thread may
    use a broker's channel. While the row cannot be written, the message stays with this worker; it goes back when the
    worker ends.
    """

    def on_reject(log: Any, connection_errors: Any, requeue: bool) -> Any:
        if not requeue:
            return reject(log, connection_errors, requeue)

        def send_back() -> None:
            try:
                reject(log, connection_errors, requeue)
            except Exception:  # what is raised here would end the worker's event loop
                logger.exception("The message of job %s could not be sent back", start.job)

        error = "its process was lost, its message went back to the broker"
        return context.put(Requeue(start, error, done=lambda: consumer.call_soon(send_back)))

    return on_reject


def on_failure(sender: Any, task_id: str, exception: Any = None, **_: Any) -> None:
    """Report a child that died, or was killed by its hard time limit."""
    context = main_context_of(sender.app)
    if context is None or _runs_here(sender.request_stack.top):
        return
    for start in context.received_jobs.of(task_id):
        if isinstance(exception, WorkerLostError):
            context.put(Lost(start, error_text(exception)))
        elif isinstance(exception, TimeLimitExceeded) and not _returns_after_time_limit(sender):
            context.put(Killed(start, "failed", f"TimeLimitExceeded: it ran for more than {exception.args[0]} s"))


def _returns_after_time_limit(task: Any) -> bool:
    """Whether Celery gives the message back that a hard time limit ended: `on_reject` reports that."""
    return bool(task.acks_late and not getattr(task, "acks_on_timeout", True))  # Celery 5.7 has it


def on_revoked(sender: Any, request: Any, terminated: bool, signum: Any, expired: bool, **_: Any) -> None:
    """Report a message that was revoked or had expired, or a start that was terminated."""
    context = main_context_of(sender.app)
    copy = tracked_copy_of(vars(request))
    if context is None or copy is None:
        return
    start = assigned_start(vars(request), copy)
    if not terminated or start is None:
        context.put(Unstarted(copy, "expired" if expired else "revoked", str(context.node)))
    elif not context.is_ending(start):  # else `stop_requests.py` reports it, once its process has exited
        context.put(Killed(start, "revoked", f"terminated by signal {signum}"))


def on_retry(sender: Any, request: Any, reason: Any = None, **_: Any) -> None:
    """Report a start that the main process itself retries after its child died, or that Celery cancelled.

    When Celery loses the broker, it cancels what it cannot acknowledge any more: the broker delivers the message again,
    maybe before this report. If a start is cancelled for a shutdown after an early acknowledgement, no message comes
    back.
    """
    context = main_context_of(sender.app)
    copy = copy_of(vars(request))
    if context is None or copy is None or _runs_here(request):
        return
    start = assigned_start(vars(request), copy)
    if start is None:
        return
    if reason is not None:
        error = error_text(reason.exc, is_sensitive(vars(request)))
        context.put(Retry(start, delay_of(reason.when, context.app), error))
    elif sender.acks_late:
        context.put(Requeue(start, "cancelled, the broker was lost", resend=True))
    else:
        context.put(Lost(start, "cancelled, its worker was shut down"))


def on_unknown(sender: Any, message: Any, name: str, **_: Any) -> None:
    """Report a message whose task this worker does not have."""
    _fail_unstarted(sender.app, message, stored(f"NotRegistered: no task is named {name!r} at this worker"))


def on_rejected(sender: Any, message: Any, exc: Any = None, **_: Any) -> None:
    """Report a message that this worker cannot read."""
    _fail_unstarted(sender.app, message, error_text(exc, is_sensitive(message.headers or {})))


def _fail_unstarted(app: Any, message: Any, error: str) -> None:
    context = main_context_of(app)
    copy = tracked_copy_of(message.headers or {})
    if context is not None and copy is not None:
        context.put(Unstarted(copy, "failed", str(context.node), error=error))


def main_context_of(app: Any) -> WorkerContext | None:
    """Return the app's context where this is a worker's main process."""
    context = context_of(app)
    return context if context is not None and context.is_main else None


def _runs_here(request: Any) -> bool:
    """Whether the signal came from a tracer in this process, in a pool without processes: then the tracker reports."""
    return admission_of(request) is not None
