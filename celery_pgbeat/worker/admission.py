"""What the guard and the tracker keep on a request, from its admission by the guard until its run has ended.

Celery makes the attributes of a request out of the headers of its message, so a name alone says nothing about who set
it. Only an object of this class counts, which no message can hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celery_pgbeat.postgres.worker_queries import Start
    from celery_pgbeat.worker.running import Running

ATTRIBUTE = "_pgbeat_admission"


@dataclass(slots=True)
class Admission:
    """A request that the guard has seen.

    Attributes:
        start: the job's start; None if the message is not a job's, or its job did not start.
        running: the job, once its body runs here.
        has_retried: whether it has sent the message of its own next attempt.
        retry_at: when that is due, as its `eta` says; None for at once.
    """

    start: Start | None = None
    running: Running | None = None
    has_retried: bool = False
    retry_at: Any = None


def admission_of(request: Any) -> Admission | None:
    """Return what is kept on a request; None if the guard has not seen it, or there is no request."""
    found = None if request is None else vars(request).get(ATTRIBUTE)
    return found if isinstance(found, Admission) else None


def admit(request: Any) -> Admission:
    """Note that the guard has seen a request; whatever its message had under that name is gone."""
    admission = Admission()
    setattr(request, ATTRIBUTE, admission)
    return admission
