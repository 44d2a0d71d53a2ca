"""`current()`: the job that the calling task runs as."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from celery import current_task

from celery_pgbeat.declare import app_timezone, define
from celery_pgbeat.declare.duration import read_duration
from celery_pgbeat.errors import InvalidPeriodicTask, NotInAJob, UnknownPeriodicTask
from celery_pgbeat.worker.start.admission import admission_of
from celery_pgbeat.worker.stop.running import Running


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

    A change of its row is written at once, in a transaction of its own. What the task does or returns afterwards does
    not undo it.
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
        """Whether this job is to stop: read it where the task can stop.

        It reads the row, at most once a second, and stays true. It is False while Postgres is out of reach.

        In a prefork pool a job that does not read it gets SoftTimeLimitExceeded instead. A job that has read it within
        the last second, or has read true, gets none: it can end in its own way.

        Example:
            >>> def sync(shops):
            ...     for shop in shops:
            ...         if current().cancelled:
            ...             return
        """
        return self._running.is_to_stop()

    @property
    def quota(self) -> timedelta | None:
        """The time that is left of the job's soft time limit, never negative; None if it has none.

        The limit is the `max_run_time` (or the option `soft_time_limit`) at the time when the job was sent. Each
        attempt counts it from its own start.

        Example:
            >>> current().quota > timedelta(minutes=29)
            True
        """
        return self._running.time_left

    def cancel(self, reason: str | None = None) -> None:
        """Pause the row until it is resumed, so that there is no further run. This job goes on.

        Args:
            reason: why, shown in `list` and `explain`. (`paused_by` names this job.)

        Raises:
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> current().cancel("all newsletters are sent")
        """
        # A row that was removed has no further run either.
        self._run("cancel", reason=reason or "cancelled by its own job", by=f"job {self.job}")

    def snooze(self, until: datetime | timedelta | float | str) -> None:
        """Pause the row until a time, so that there is no run before it. This job goes on.

        The next run is the first occurrence at or after `until`; earlier ones are never caught up. A longer pause stays
        as long as it is. If `until` has passed, nothing happens.

        Args:
            until: an aware datetime; or a time from now, by the database's clock: a timedelta, seconds, `1h30m`.

        Raises:
            InvalidPeriodicTask: `until` is a naive datetime, or neither an instant nor a duration.
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> current().snooze("1h30m")
        """
        by = f"job {self.job}"
        if not isinstance(until, datetime):
            self._run("snooze", until=None, seconds=read_duration("until", until).total_seconds(), by=by)
        elif until.tzinfo is not None:
            self._run("snooze", until=until, seconds=None, by=by)
        else:
            raise InvalidPeriodicTask(
                f"until is {until.isoformat()}, a naive datetime: give it a time zone, as in "
                f"datetime.now(timezone.utc) + timedelta(hours=1)"
            )

    def reschedule(self, schedule: Any) -> None:
        """Change the row's schedule, from its next run on. The time zone stays, unless the schedule names one.

        Args:
            schedule: as for `PgBeat.schedule`: `cron(...)`, `every(...)`, text, a timedelta, seconds.

        Raises:
            InvalidSchedule: the schedule is wrong; the error names the field and the value.
            InvalidPeriodicTask: it is faster than `pgbeat_min_interval`.
            UnknownPeriodicTask: the row was removed.
            DatabaseUnavailable: Postgres is out of reach.

        Example:
            >>> current().reschedule(every("10m"))
        """
        context = self._running.context
        for row in self._run("times_of"):
            zone = row["timezone"] or app_timezone(context.app)
            kept = {column: row[column] for column in ("dst", "anchor", "start_at")}
            definition = define(self.periodic_task, row["task"], schedule, kept, context.settings, zone)
            columns = {"timezone": definition.timezone or row["timezone"], "anchor": definition.anchor}
            if self._run("reschedule", schedule=definition.schedule, **columns):
                return
        raise UnknownPeriodicTask(
            f"No periodic task is named {self.periodic_task!r} any more: it was removed while its job ran."
        )

    def _run(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        return self._running.context.api_queries.run(statement, name=self.periodic_task, **parameters)


def current() -> CurrentJob:
    """Return the job that the calling task runs as.

    It works in any pool of a worker, in the thread that runs the task.

    Raises:
        NotInAJob: the task was called directly or eagerly, its message is not of a periodic task, or its row has
            `tracking = 'send'`, whose jobs are not tracked.

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
