"""A job's message: our header in it, and the token that travels with it inside a worker.

The main process receives the message, another process runs it, and both must mean the same start. So the main process
makes the token and adds it to the request, which takes it to the child.

The token is among the message's *properties*, not beside our header: Celery copies every header that it does not know
into the message of a retry, and if two messages shared a token, both could start.
"""

from __future__ import annotations

import logging
import uuid
import weakref
from collections.abc import Mapping
from typing import Any

from celery.worker import state

from celery_pgbeat.postgres.worker_queries import MessageCopy, Start
from celery_pgbeat.texts.safe_text import in_short

HEADER = "pgbeat"
PROPERTIES = "properties"
LARGEST = 2_000_000_000  # of runs and of attempts: the most that the tables accept

logger = logging.getLogger(__name__)


def header_of(fields: Mapping[str, Any]) -> Any:
    """Return what a message's fields have under our header's name, in either of Celery's protocols."""
    return fields.get(HEADER) or (fields.get("headers") or {}).get(HEADER)


def copy_of(fields: Mapping[str, Any]) -> MessageCopy | None:
    """Read our header from a message's fields, as a request or a task's context has them; None if it is not ours.

    A header in a message with another id was copied there by the user's code, and a replacement (`Task.replace`) is
    another task under the job's id: neither is the job.
    """
    header = header_of(fields)
    if header is None or fields.get("replaced_task_nesting"):
        return None
    try:
        run, attempt = int(header["run"]), int(fields.get("retries") or 0)
        if not (0 <= run <= LARGEST and 0 <= attempt <= LARGEST):
            raise ValueError(run, attempt)
        copy = MessageCopy(uuid.UUID(header["job"]), run, attempt, task=_task_of(fields))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        logger.warning("The header %r of task %s is not celery-pgbeat's: ignored", HEADER, in_short(fields.get("id")))
        return None
    return copy if str(copy.job) == fields.get("id") else None


def tracked_copy_of(fields: Mapping[str, Any]) -> MessageCopy | None:
    """Likewise, but None also for a job that workers neither guard nor track."""
    return None if is_untracked(fields) else copy_of(fields)


def _task_of(fields: Mapping[str, Any]) -> str | None:
    """Return the name of the task that a message calls, if it is a text that Postgres can compare."""
    task = fields.get("task")
    return task if isinstance(task, str) and "\0" not in task else None


def is_sensitive(fields: Mapping[str, Any]) -> bool:
    """Whether a message is of a sensitive row: of an error of its task only the class may be reported."""
    header = header_of(fields)
    return isinstance(header, Mapping) and header.get("sensitive") is True


def is_untracked(fields: Mapping[str, Any]) -> bool:
    """Whether a message says that its job has `tracking = 'send'`."""
    header = header_of(fields)
    return isinstance(header, Mapping) and header.get("tracking") == "send"


def assign_token(request: Any, worker: str) -> Start | None:
    """Give a received request the token of the start that it will try; None if it is not that of a tracked job."""
    copy = tracked_copy_of(request.request_dict)
    if copy is None:
        return None
    start = Start(copy.job, copy.run, copy.attempt, uuid.uuid4(), worker, task=copy.task)
    properties = request.request_dict.get(PROPERTIES) or {}
    # A new dict: if the message goes back to the broker, it must not contain the token.
    request.request_dict[PROPERTIES] = {**properties, HEADER: {"token": str(start.token), "worker": worker}}
    return start


def assigned_start(fields: Mapping[str, Any], copy: MessageCopy) -> Start | None:
    """Return the start that the main process assigned to this request, or None if it did not."""
    given = (fields.get(PROPERTIES) or {}).get(HEADER)
    if given is None:
        return None
    return Start(copy.job, copy.run, copy.attempt, uuid.UUID(given["token"]), given["worker"], task=copy.task)


class ReceivedJobs:
    """The requests that a main process has received, each with its token, for as long as Celery keeps them."""

    def __init__(self) -> None:
        self._requests: weakref.WeakValueDictionary[Start, Any] = weakref.WeakValueDictionary()

    def add(self, request: Any, start: Start) -> None:
        """Remember a request."""
        self._requests[start] = request

    def running(self) -> list[Start]:
        """Return the starts whose requests a pool process has accepted and not yet finished."""
        return [start for start, _ in self.under_way()]

    def under_way(self) -> list[tuple[Start, Any]]:
        """Return the running starts with their requests."""
        return [(start, request) for start, request in self._alive() if request in state.active_requests]

    def cancelled(self) -> list[tuple[Start, Any]]:
        """Return the starts that Celery has cancelled, with their requests, while the pool still keeps these."""
        return [(start, request) for start, request in self._alive() if getattr(request, "_already_cancelled", False)]

    def of(self, task_id: str) -> list[Start]:
        """Return the starts of a task id: one, or several if copies of one message were received."""
        return [start for start, _ in self._alive() if str(start.job) == task_id]

    def _alive(self) -> list[tuple[Start, Any]]:
        # valuerefs() is one step for other threads; items() would fail while another thread adds.
        references = [(reference.key, reference()) for reference in self._requests.valuerefs()]
        return [(start, request) for start, request in references if request is not None]
