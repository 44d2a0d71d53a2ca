"""The signal handlers of the process that ran a task: they report how the run ended.

The tracer sends `task_postrun` at the end of each run, in the process where it ended. A message that the guard dropped
has no start on its request, and nothing is reported. If this process has died, the main process reports instead
(`parent_signals.py`).

A retry is recognised by its message, not only by the exception Retry: `retry(throw=False)` sends one and goes on. The
job goes on then, however that run ends.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from typing import Any

from celery import current_task, states
from celery.exceptions import WorkerShutdown, WorkerTerminate
from celery.utils.time import maybe_make_aware

from celery_pgbeat.postgres.worker_queries import Finish, Start
from celery_pgbeat.texts import redaction
from celery_pgbeat.worker.context import context_of
from celery_pgbeat.worker.report.reports import Lost, Report, Requeue, Retry
from celery_pgbeat.worker.start.admission import admission_of
from celery_pgbeat.worker.start.message import HEADER, copy_of, is_sensitive

ERROR_LENGTH = 500  # characters of an error that are kept


def on_publish(headers: Any = None, **_: Any) -> None:
    """Note that a job has sent the message of its own next attempt."""
    copy = copy_of(headers) if headers and HEADER in headers else None
    admission = admission_of(current_task.request_stack.top) if copy is not None and current_task else None
    if copy is None or admission is None or admission.start is None:
        return
    if (copy.job, copy.run) == (admission.start.job, admission.start.run):
        admission.has_retried, admission.retry_at = True, headers.get("eta")


def on_postrun(sender: Any, state: str | None = None, retval: Any = None, **_: Any) -> None:
    """Report how the run of a job ended."""
    request = sender.request_stack.top
    admission = admission_of(request)
    context = context_of(sender.app)
    if context is None or admission is None or (start := admission.start) is None:
        return
    context.stop_signal.exit()
    report: Report | None
    if state is None and context.is_main:
        report = unwound(start, is_sensitive(vars(request)))
    elif state in (states.SUCCESS, states.FAILURE) and admission.has_retried:
        report = Retry(start, delay_of(admission.retry_at, sender.app), "it has sent its own retry")
    else:
        report = outcome(sender, start, state, retval, is_sensitive(vars(request)))
    if report is not None:
        context.report(report)


def outcome(task: Any, start: Start, state: str | None, retval: Any, hiding: bool = False) -> Report | None:
    """Translate the tracer's final state into a report; None if there is nothing to report.

    If the task itself raises `Ignore` (`Task.replace` does so), it has succeeded. A rejected message comes back only if
    it was not acknowledged early. Without a state this child is being killed, and its main process knows why. With
    `hiding` only the class of an error is reported, because its text may quote an argument.
    """
    if state in (states.SUCCESS, states.IGNORED):
        return Finish(start, "succeeded")
    if state == states.RETRY:
        error = error_text(retval.exc if retval.exc is not None else retval, hiding)
        return Retry(start, delay_of(retval.when, task.app), error)
    if state == states.REJECTED:
        reason = retval.reason
        error = stored(f"Reject: {redaction.MASK if hiding else reason}")
        if isinstance(reason, Exception):
            error = error_text(reason, hiding)
        if retval.requeue and task.acks_late:
            return Requeue(start, error)
        return Finish(start, "failed", error)
    if state == states.FAILURE:
        return Finish(start, "failed", error_text(retval, hiding))
    return None


def unwound(start: Start, hiding: bool = False) -> Report:
    """Return the report of a run that a BaseException ended, in a pool without processes of its own."""
    error = sys.exc_info()[1]
    if isinstance(error, (WorkerShutdown, WorkerTerminate)):
        return Lost(start, "the worker was shut down while the job was running")
    return Finish(start, "failed", error_text(error, hiding))


def delay_of(when: Any, app: Any) -> timedelta:
    """Return how long a retry waits: Celery gives seconds or an instant, and takes a naive one as UTC."""
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    if isinstance(when, datetime):
        aware: datetime = maybe_make_aware(when, app.timezone)
        return max(timedelta(0), aware - datetime.now(timezone.utc))
    return timedelta(seconds=max(0.0, float(when or 0)))


def error_text(error: BaseException | None, hiding: bool = False) -> str:
    """Return an exception's type and, unless it is to be hidden, its message; never its traceback."""
    return stored(redaction.error_text(error, hiding))


def stored(text: str) -> str:
    """Return a text as Postgres can store it, cut to ERROR_LENGTH."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")[:ERROR_LENGTH]
