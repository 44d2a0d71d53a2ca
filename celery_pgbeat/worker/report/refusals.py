"""What a worker does if Postgres is in reach and refuses a report, and what it logs about that.

A schema that is older than the worker, a missing right or a damaged page is repaired sooner or later: such a report is
kept and tried again. A value that Postgres can never take does not change: such a report is dropped at once.

The number and the age of kept reports are limited, so that the memory of a worker cannot grow without end. The log gets
one line a minute, not one for each report, and the line names the way out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from celery_pgbeat.errors import DatabaseBusy, DatabaseUnavailable
from celery_pgbeat.postgres.database import NO_RIGHT, reason, sqlstate

KEPT = 10_000  # refused finishes, and other refused reports, that are kept: each about 10 MB; the oldest are dropped
KEPT_FOR = 86_400.0  # seconds that a refused report is kept: a deployment that forgot its migration is noticed in a day
REMIND_EVERY = 60.0  # seconds between two lines about the same error

NEVER_TAKEN = ("22", "23")  # SQLSTATE classes of a value: data exceptions, violated constraints
OF_THE_STATEMENT = "42"  # SQLSTATE class of a statement that this schema or user does not allow, whatever its values

logger = logging.getLogger(__name__)


def is_outage(error: Exception) -> bool:
    """Whether no statement at all can be run now."""
    return isinstance(error, DatabaseUnavailable) and not isinstance(error, DatabaseBusy)


def is_kept(error: Exception) -> bool:
    """Whether a report that failed with this error may pass later, without a change of its own."""
    code = _code(error)
    return isinstance(error, DatabaseBusy) or (code is not None and not code.startswith(NEVER_TAKEN))


def is_of_the_statement(error: Exception) -> bool:
    """Whether Postgres refuses the statement itself: then it fails for every report that needs it."""
    return (_code(error) or "").startswith(OF_THE_STATEMENT)


class Refusals:
    """The log lines about refused reports: why, how many are kept, how many are dropped, and when that is over."""

    def __init__(self, kept: Callable[[], int]) -> None:
        self._kept = kept
        self._dropped = 0
        self._logged_at: dict[str, float] = {}
        self._is_refusing = False

    def note(self, error: Exception) -> None:
        """Note that Postgres refused a report which is kept."""
        self._is_refusing = True
        if self._is_time_for(_named(error)):
            logger.error(
                "Postgres refuses reports of this worker: %s Kept and tried again: %d. %s",
                _sentence(error),
                self._kept(),
                _way_out(error),
                extra={"action": "wait"},
            )

    def note_duty(self, error: Exception) -> None:
        """Note that a periodic duty failed; it runs again when it is due."""
        if not self._is_time_for(f"duty: {_named(error)}"):
            return
        if is_kept(error):
            logger.error("A periodic duty of this worker fails: %s %s", _sentence(error), _way_out(error))
        else:
            logger.error("A periodic duty of this worker fails; it runs again", exc_info=error)

    def note_dropped(self, count: int) -> None:
        """Note that refused reports are dropped because too many are kept, or for too long."""
        self._dropped += count
        if self._dropped and self._is_time_for("dropped"):
            logger.error(
                "%d refused reports of this worker are dropped: it keeps at most %d, for at most %.0f h",
                self._dropped,
                KEPT,
                KEPT_FOR / 3600,
                extra={"action": "lose"},
            )
            self._dropped = 0

    def look(self) -> None:
        """Log once that Postgres accepts reports again, when none is kept any more."""
        self.note_dropped(0)
        if self._is_refusing and not self._kept():
            self._is_refusing = False
            self._logged_at.clear()
            logger.info("Postgres accepts the reports of this worker again", extra={"action": "resume"})

    def _is_time_for(self, what: str) -> bool:
        now, logged_at = monotonic(), self._logged_at.get(what)
        if logged_at is not None and now < logged_at + REMIND_EVERY:
            return False
        self._logged_at[what] = now
        return True


def _code(error: Exception) -> str | None:
    return sqlstate(getattr(error, "orig", None))


def _named(error: Exception) -> str:
    return f"{type(error).__name__} {_code(error)}"


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, DatabaseBusy) else reason(getattr(error, "orig", error))


def _way_out(error: Exception) -> str:
    code = _code(error) or ""
    if code == NO_RIGHT:
        return "The worker's database user lacks a right: run the output of `celery-pgbeat sql --roles` with psql."
    if is_of_the_statement(error):
        return "The schema may be older than this package: run `celery-pgbeat migrate`."
    if isinstance(error, DatabaseBusy):
        return "A time-out, a lock or a deadlock ended the statement."
    return "The log of Postgres says more."
