"""`current()`: the job that a task runs as, asked from inside the task."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from celery import current_task

from celery_pgbeat.declare import app_timezone, define
from celery_pgbeat.declare.span import read_span
from celery_pgbeat.errors import InvalidPeriodicTask, NotInAJob, UnknownPeriodicTask
from celery_pgbeat.worker.admission import admission_of
from celery_pgbeat.worker.running import Running


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """The job that runs here and now.

    Attributes:
        periodic_task: the name of its row.
        job: its id, which is the Celery task id too.
        scheduled_for: the instant for which it was scheduled, aware in UTC.
        origin: `schedule`, `catchup`, `backfill` or `manual`.
        run: 0, and one more each time that it runs again after it was lost.
        attempt: 0, and one more with each of Celery's retries.

    What it does to its row, it does at once and in a transaction of its own; what the task does afterwards, or returns,
    changes nothing of that.
    """

    periodic_task: str
    job: UUID
    scheduled_for: datetime
    origin: str
    run: int
    attempt: int
    _running: Running = field(repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether somebody wants this job to end: look at it where the task can stop.

        It asks Postgres, at most once a second, and stays true. While Postgres is away nobody was heard to ask.

        In a prefork pool a job that does not look gets SoftTimeLimitExceeded instead. One that has looked within the
        last second, or has read true, does not: it may end in good order.

        Example:
            >>> def sync(shops):
            ...     for shop in shops:
            ...         if current().cancelled:
            ...             return
        """
        return self._running.is_to_stop()

    @property
    def quota(self) -> timedelta | None:
        """What is left of the job's timebox, never less than nothing; None if it has none.

        The timebox is `max_run_time` (or an option `soft_time_limit`) as it was when the job was sent, counted for
        each attempt from its start.

        Example:
            >>> current().quota > timedelta(minutes=29)
            True
        """
        return self._running.time_left

    def cancel(self, reason: str | None = None) -> None:
        """Have no further run: pause the row until somebody resumes it. This job goes on.

        Args:
            reason: why, for those who find the row paused. (By whom: by this job.)

        Raises:
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> current().cancel("all newsletters are sent")
        """
        # A row that is gone has no further run either.
        self._tell("cancel", reason=reason or "cancelled by its own job", by=f"job {self.job}")

    def snooze(self, until: datetime | timedelta | float | str) -> None:
        """Have no run before a time: pause the row until then. This job goes on.

        The next run is the first occurrence at or after `until`; what lies before it is never caught up. It never
        shortens another pause, and does nothing where `until` has passed.

        Args:
            until: an aware datetime; or how long from now by the database's clock: a timedelta, seconds, `1h30m`.

        Raises:
            InvalidPeriodicTask: `until` is a naive datetime, or neither instant nor span.
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> current().snooze("1h30m")
        """
        by = f"job {self.job}"
        if not isinstance(until, datetime):
            self._tell("snooze", until=None, seconds=read_span("until", until).total_seconds(), by=by)
        elif until.tzinfo is not None:
            self._tell("snooze", until=until, seconds=None, by=by)
        else:
            raise InvalidPeriodicTask(
                f"until is {until.isoformat()}, a naive datetime: give it a time zone, as in "
                f"datetime.now(timezone.utc) + timedelta(hours=1)"
            )

    def reschedule(self, schedule: Any) -> None:
        """Change the row's schedule, from its next run on. A zone that the schedule does not name stays as it is.

        Args:
            schedule: what `PgBeat.schedule` takes: `cron(...)`, `every(...)`, text, a timedelta, seconds.

        Raises:
            InvalidSchedule: it is wrong; names the field and the value.
            InvalidPeriodicTask: it is faster than `pgbeat_min_interval`.
            UnknownPeriodicTask: the row is gone.
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> current().reschedule(every("10m"))
        """
        context = self._running.context
        for row in self._tell("times_of"):
            definition = define(
                self.periodic_task,
                row["task"],
                schedule,
                {column: row[column] for column in ("dst", "anchor", "start_at")},
                context.settings,
                row["timezone"] or app_timezone(context.app),
            )
            columns = {"timezone": definition.timezone, "anchor": definition.anchor}
            if self._tell("reschedule", schedule=definition.schedule, **columns):
                return
        raise UnknownPeriodicTask(
            f"No periodic task is named {self.periodic_task!r} any more: it was removed while its job ran."
        )

    def _tell(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._running.context.queries.run(statement, name=self.periodic_task, **parameters)


def current() -> CurrentJob:
    """Return the job that the calling task runs as.

    It answers in any pool of a worker, in the thread that runs the task.

    Raises:
        NotInAJob: the task was called directly or eagerly, its message is not of a periodic task, or its row has
            `tracking = 'send'`, whose jobs nobody tracks.

    Example:
        >>> current().periodic_task, current().origin, current().attempt
        ('nightly', 'schedule', 0)
    """
    admission = admission_of(current_task.request_stack.top) if current_task else None
    if admission is None or (running := admission.running) is None:
        raise NotInAJob(
            "No job runs here: current() answers inside a task that a worker runs for a periodic task, not in one that "
            "is called directly or eagerly, or whose jobs are not tracked."
        )
    start, header = running.start, running.header
    return CurrentJob(
        periodic_task=header["periodic_task"],
        job=start.job,
        scheduled_for=datetime.fromisoformat(header["scheduled_for"]).astimezone(timezone.utc),
        origin=header["origin"],
        run=start.run,
        attempt=start.attempt,
        _running=running,
    )
