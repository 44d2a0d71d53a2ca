"""The steps of a cycle, each of which may fail by itself.

A step that fails is logged and left out for a pause, which grows while it fails. All others go on: what is due is sent
even if no job can be judged, say. Nothing is swallowed: the log has the first error of a step at once, and again once
a minute while it stays the same.

An outage of Postgres, a schema that this beat may not use and a conflict with other beats are not a step's own: these
errors end the cycle.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from celery_pgbeat.beat.database_clock import boottime
from celery_pgbeat.errors import (
    DatabaseBusy,
    DatabaseUnavailable,
    NotPermitted,
    SchemaMissing,
    SchemaTaken,
    SchemaTooNew,
    ShadowConflict,
)
from celery_pgbeat.postgres.database import NO_RIGHT, Database, reason, sqlstate

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds after an error, doubled with each further one
REMIND_EVERY = 60.0  # seconds between two log lines about the same error
# Errors after which a beat can do nothing at all, and which say what is wrong without a traceback.
OUTAGES = (DatabaseUnavailable, SchemaMissing, SchemaTaken, SchemaTooNew, ShadowConflict)


def explained(error: Exception, database: Database) -> Exception:
    """Return an error that explains a driver's error for a beat; any other error as it is."""
    error = database.translated(error)
    origin = getattr(error, "orig", None)
    if sqlstate(origin) != NO_RIGHT:
        return error
    return NotPermitted(
        f"Postgres refuses a statement of this beat: {reason(origin)} As this user, `celery-pgbeat doctor` lists the "
        "missing grants; `celery-pgbeat sql --roles` prints all of them."
    )


@dataclass(slots=True)
class Failure:
    """A step that failed when it was tried last.

    Attributes:
        pause: seconds, before the jitter.
        again_at: by the boot-time clock: until then the step is left out.
        said: the error that was logged last.
        said_at: when.
    """

    pause: float = 0.0
    again_at: float = 0.0
    said: str = ""
    said_at: float = 0.0


class Steps:
    """Runs the steps of one beat's cycles.

    Attributes:
        has_failed: whether a step has failed since the last `begin`.
        was_busy: whether Postgres has ended the statement of a step since then, in favour of others.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._failures: dict[str, Failure] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a cycle."""
        self.has_failed = self.was_busy = False

    @property
    def again_in(self) -> float:
        """Seconds until the next step that is left out may be tried again; infinite if there is none."""
        now = boottime()
        return min((one.again_at - now for one in self._failures.values() if one.again_at > now), default=float("inf"))

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Run a step, unless it has failed just now; return whether it made progress.

        Raises:
            DatabaseUnavailable: no step can work now. So do the other errors of `OUTAGES`.
        """
        failure = self._failures.get(name)
        if failure is not None and boottime() < failure.again_at:
            return False
        try:
            progress = bool(step())
        except Exception as raised:  # of whatever kind: one step that fails must not stop the beat
            error = explained(raised, self._database)
            if isinstance(error, OUTAGES) and not isinstance(error, DatabaseBusy):
                raise error from raised
            self._failed(name, error)
            return False
        if self._failures.pop(name, None) is not None:
            logger.info("The step %r works again", name, extra={"action": "wait"})
        return progress

    def _failed(self, name: str, error: Exception) -> None:
        self.has_failed = True
        self.was_busy = self.was_busy or isinstance(error, DatabaseBusy)
        failure = self._failures.setdefault(name, Failure())
        failure.pause = min(max(failure.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        now = boottime()
        failure.again_at = now + failure.pause * random.uniform(0.5, 1.0)  # noqa: S311  jitter: not all beats at once
        said = repr(error)
        if failure.said == said and now - failure.said_at < REMIND_EVERY:
            return
        failure.said, failure.said_at = said, now
        is_explained = isinstance(error, (DatabaseBusy, NotPermitted))
        origin = getattr(error, "orig", None) or error
        context = getattr(getattr(origin, "diag", None), "context", None) or ""
        logger.error(
            "The step %r failed, the others go on: %s%s It is tried again.",
            name,
            reason(origin),
            f" In {context.splitlines()[0]}." if context.startswith("PL/") else "",  # perhaps a trigger of a user
            exc_info=None if is_explained else error,
            extra={"action": "wait"},
        )
