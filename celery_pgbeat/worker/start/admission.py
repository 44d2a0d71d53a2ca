"""What the guard and the tracker keep on a request, from the guard's admission until the run has ended.

Celery makes the attributes of a request from the headers of its message, so a message can set an attribute of any name.
Only an object of this class counts, which no message can contain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery_pgbeat.worker.stop.running import Running

if TYPE_CHECKING:  # the modules of tasks import `current`, also in processes that need no SQLAlchemy
    from celery_pgbeat.postgres.worker_queries import Start

ATTRIBUTE = "_pgbeat_admission"


@dataclass(slots=True)
class Admission:
    """A request that the guard has seen.

    Attributes:
        start: the job's start; None if the message is not a job's, or its job did not start.
        running: the job, once its body runs here.
        has_retried: whether it has sent the message of its own next attempt.
        retry_at: when that attempt is due, by its `eta`; None for at once.
    """

    start: Start | None = None
    running: Running | None = None
    has_retried: bool = False
    retry_at: Any = None


def admission_of(request: Any) -> Admission | None:
    """Return the admission on a request; None if the guard has not seen it, or there is no request."""
    found = None if request is None else vars(request).get(ATTRIBUTE)
    return found if isinstance(found, Admission) else None


def admit(request: Any) -> Admission:
    """Note that the guard has seen a request; this replaces an attribute of that name from the message."""
    admission = Admission()
    setattr(request, ATTRIBUTE, admission)
    return admission
