"""Every error that a user can meet: what happened, with the value, and the way out."""

from __future__ import annotations


class PgBeatError(Exception):
    """The base of all errors of celery-pgbeat."""


class InvalidSchedule(PgBeatError, ValueError):
    """A schedule, a time zone or a window that can never work.

    Attributes:
        text: what was given.
        field: the part at fault, in the words of the schedule's kind ("hour", "timezone", "step").
        reason: what is wrong with it, naming the value.
        position: offset of the fault in `text`, or None where no single place is to blame.

    Example:
        >>> str(InvalidSchedule("0 25 * * *", "hour", "hour 25 is not in 0-23", 2))
        "'0 25 * * *': hour 25 is not in 0-23"
    """

    def __init__(self, text: str, field: str, reason: str, position: int | None = None) -> None:
        super().__init__(text, field, reason, position)
        self.text = text
        self.field = field
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 80 else self.text[:77] + "..."
        return f"{shown!r}: {self.reason}"


class InvalidPeriodicTask(PgBeatError, ValueError):
    """A periodic task that cannot be stored: an argument, an option or a column is wrong."""


class InvalidSetting(PgBeatError, ValueError):
    """A `pgbeat_*` setting (or its environment variable) has a value that cannot be used."""


class MissingDriver(PgBeatError, ImportError):
    """Neither psycopg2 nor psycopg is importable, or not the one that the URL asks for."""


class MissingExtra(PgBeatError, ImportError):
    """A setting asks for what an optional extra brings, and it is not installed."""


class UnknownPeriodicTask(PgBeatError, LookupError):
    """There is no periodic task of that name."""


class UnknownGroup(PgBeatError, LookupError):
    """No periodic task names that group, and it has neither a limit nor a pause."""


class JobInTheWay(PgBeatError, RuntimeError):
    """A job of that name is not final yet, so `trigger` refuses to start another beside it."""


class UnknownBackfill(PgBeatError, LookupError):
    """There is no backfill of that id; those that are over are kept for `pgbeat_retention`."""


class BackfillOver(PgBeatError, RuntimeError):
    """The backfill is finished or cancelled already: nothing of it is left to cancel."""


class NotInAJob(PgBeatError, RuntimeError):
    """`current()` was called where no job runs: outside of a task, or in one that no job of ours has started."""


class SchedulerNotSetUp(PgBeatError, RuntimeError):
    """A scheduler that was never set up was asked to declare an entry."""


class SchemaTooNew(PgBeatError, RuntimeError):
    """The database's schema is newer than this package can work with."""


class SchemaMissing(PgBeatError, RuntimeError):
    """The database has no pgbeat schema, or an older one, and `pgbeat_auto_migrate` is off."""


class DatabaseUnavailable(PgBeatError, ConnectionError):
    """Postgres cannot be reached, or refuses us; the message carries no password."""


class DatabaseUnsuitable(DatabaseUnavailable):
    """A setting of the database or of the role changes what our statements mean; the message names it."""


class DatabaseBusy(DatabaseUnavailable):
    """Postgres is there, but a time-out, a deadlock or a serialisation failure ended the statement: try it again."""
