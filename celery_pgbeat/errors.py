"""The errors of this package. A message says what happened, with the value, and how to fix it."""

from __future__ import annotations


class PgBeatError(Exception):
    """The base of all errors of celery-pgbeat."""


class InvalidSchedule(PgBeatError, ValueError):
    """A schedule, a time zone or a blackout window is not valid.

    Attributes:
        text: the text that was given.
        field: the part that is wrong, in the words of the schedule's kind ("hour", "timezone", "step").
        reason: what is wrong with it, with the value.
        position: the offset of the wrong part in `text`; None if no single place is wrong.

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
    """A periodic task cannot be stored: an argument, an option or a column is wrong."""


class InvalidSource(PgBeatError, ValueError):
    """The entries of another scheduler cannot be read: their source is out of reach, or has another format."""


class InvalidSetting(PgBeatError, ValueError):
    """A `pgbeat_*` setting (or its environment variable), or Celery's `timezone`, has a value that cannot be used."""


class MissingDriver(PgBeatError, ImportError):
    """Neither psycopg2 nor psycopg is installed, or not the one that the URL names."""


class MissingExtra(PgBeatError, ImportError):
    """A setting needs an optional extra that is not installed."""


class UnknownPeriodicTask(PgBeatError, LookupError):
    """There is no periodic task of that name."""


class UnknownTimezone(PgBeatError, LookupError):
    """A row has no time zone yet: the first beat that plans it writes its app's there, and no app is known here."""


class UnknownGroup(PgBeatError, LookupError):
    """No periodic task names that group, and it has no limit and no pause."""


class GroupInUse(PgBeatError, RuntimeError):
    """Periodic tasks name that group, or another group waits for it, so it cannot be removed."""


class PeriodicTaskInUse(PgBeatError, RuntimeError):
    """Another periodic task runs after that one, so it can be neither removed nor get another name."""


class GroupFinished(PgBeatError, RuntimeError):
    """The group of that periodic task is finished: it takes no new jobs."""


class NothingToRetry(PgBeatError, RuntimeError):
    """No failed job has paused that group, so `resume_group` has none to retry."""


class JobInTheWay(PgBeatError, RuntimeError):
    """A job of that periodic task is not final yet, so `trigger` does not start another."""


class UnknownJob(PgBeatError, LookupError):
    """There is no job with that id. Final ones are kept for `pgbeat_retention`."""


class JobNotRetriable(PgBeatError, RuntimeError):
    """The job is not final, has succeeded, or called another task than its periodic task calls now."""


class NoDecisionNeeded(PgBeatError, RuntimeError):
    """That job does not wait for a decision: it is not in state `error`."""


class WorkTaken(PgBeatError, RuntimeError):
    """Another person has that task for people, or takes or changes it at this moment; the message says who."""


class WorkNotOpen(PgBeatError, RuntimeError):
    """That job is no task for people that can be picked up, given back or finished now; the message says why."""


class WorkForOthers(PgBeatError, PermissionError):
    """That task for people is for other persons, or that user may not cancel other jobs."""


class JobNotCancellable(PgBeatError, RuntimeError):
    """The job is final, is running, waits for a decision, or is being sent: the message says what to do."""


class JobNotResendable(PgBeatError, RuntimeError):
    """The job does not wait with the broker, or a second message of it would not do: the message says what to do."""


class UnknownBackfill(PgBeatError, LookupError):
    """There is no backfill with that id. Ended ones are kept for `pgbeat_retention`."""


class BackfillOver(PgBeatError, RuntimeError):
    """The backfill has already finished or been cancelled, so it cannot be cancelled."""


class NotInAJob(PgBeatError, RuntimeError):
    """`current()` was called outside of a task, or in a task that no job of ours has started."""


class SchedulerNotSetUp(PgBeatError, RuntimeError):
    """An entry was added to a scheduler that has not been set up."""


class SchemaTooNew(PgBeatError, RuntimeError):
    """The database's schema is newer than this package can work with."""


class SchemaMissing(PgBeatError, RuntimeError):
    """The database has no pgbeat schema, or an older one, and `pgbeat_auto_migrate` is off."""


class SchemaTaken(PgBeatError, RuntimeError):
    """The schema serves another app, whose beats live."""


class ShadowConflict(PgBeatError, RuntimeError):
    """Beats in shadow and beats that send use one schema; the message says which of them waits."""


class NotPermitted(PgBeatError, PermissionError):
    """The user of `pgbeat_url` lacks a privilege; the message has the grant."""


class DatabaseUnavailable(PgBeatError, ConnectionError):
    """Postgres cannot be reached, or refuses the connection. The message contains no password."""


class DatabaseUnsuitable(DatabaseUnavailable):
    """The database is not in UTF8, or a setting changes the meaning of our statements; the message names it."""


class DatabaseBusy(DatabaseUnavailable):
    """Postgres is in reach, but a time-out, a deadlock or a serialisation failure ended the statement: try again."""
