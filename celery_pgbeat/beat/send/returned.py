"""Finds out from what a task's `apply_async` returned whether there is a message at all.

Celery's own returns a result with the job's id. A task class of another package may send nothing and return something
else: the result of a task that already runs (celery-singleton), a rejected one (celery-once), or None (a hook after the
commit). A job without a message would block its row until its pickup deadline. Such a hook may also send at once, if
there is no transaction, and return None nevertheless. So a message that was published counts, whatever was returned.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from celery import signals, states
from celery.result import EagerResult

from celery_pgbeat.beat.send.messages import JobEntry
from celery_pgbeat.beat.send.rendering.eligibility import comes_from
from celery_pgbeat.texts.redaction import error_text

# A task that `task_always_eager` ran in the beat ends as it would in a worker. A task that ignores or rejects its own
# message ends without a result.
FINAL = {
    states.SUCCESS: "succeeded",
    states.FAILURE: "failed",
    states.REVOKED: "revoked",
    states.IGNORED: "succeeded",
    states.REJECTED: "revoked",
}


class Ended(NamedTuple):
    """A job whose task has run in the beat: its final state, and what went wrong."""

    job: uuid.UUID
    state: str
    error: str | None


@contextmanager
def watched(entry: JobEntry) -> Iterator[None]:
    """Note on an entry whether a message of its job is published, if its task has its own `apply_async`."""
    task = entry.app.tasks.get(entry.task)
    if task is None or comes_from(task.apply_async, "celery.app.task"):
        yield
        return

    def note(headers: Any = None, body: Any = None, **_: Any) -> None:
        # Celery's second protocol has the id in the headers, the first one in the body.
        if str(entry.job.id) in [part.get("id") for part in (headers, body) if isinstance(part, Mapping)]:
            entry.is_published = True

    signals.after_task_publish.connect(note, weak=False)
    try:
        yield
    finally:
        signals.after_task_publish.disconnect(note)


def is_sent(entry: JobEntry) -> bool:
    """Return whether a message of this job was sent, by what `apply_async` returned.

    If a wrapper of the scheduler did not pass the result on, the job counts as sent. So does a job that a beat has
    begun to send before: the message that `apply_async` found in the queue may be its own.
    """
    its_own = _is_its_own(entry) and not isinstance(entry.returned, EagerResult)
    return not entry.has_returned or entry.is_published or its_own or entry.job.sends > 1


def ended(entry: JobEntry) -> Ended | None:
    """Return how a job ended that ran in the beat itself; None if it did not run here."""
    if entry.is_published:
        return None
    if not isinstance(entry.returned, EagerResult):
        if _propagates(entry):
            return Ended(entry.job.id, "failed", error_text(entry.error, entry.sensitive))
        return None
    state = FINAL.get(entry.returned.state)
    if state is None or not _is_its_own(entry):
        return None
    failed = state == "failed" and isinstance(entry.returned.result, BaseException)
    return Ended(entry.job.id, state, error_text(entry.returned.result, entry.sensitive) if failed else None)


def _is_its_own(entry: JobEntry) -> bool:
    return getattr(entry.returned, "id", None) == str(entry.job.id)


def _propagates(entry: JobEntry) -> bool:
    """Return whether an error comes from a task that ran here: `task_eager_propagates` lets it out."""
    conf: Any = entry.app.conf
    return isinstance(entry.error, Exception) and conf.task_always_eager and conf.task_eager_propagates
