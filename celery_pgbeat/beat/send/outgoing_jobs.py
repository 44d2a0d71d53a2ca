"""The jobs that a decision, a recovery or a step of a backfill has sent, made from its rows.

A row may contain what cannot become a message. So the delivery reads the texts, and an error refuses that one job.
"""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.declare.sendable import check_sendable
from celery_pgbeat.planning import BackfillRow, Decision, Due
from celery_pgbeat.postgres.beat_queries import AtOnce, Recovered

LONGEST_WINDOW = timedelta(days=36_500)  # the end of a longer one may be later than any datetime


def job_of_decision(
    decision: Decision, job: uuid.UUID, scheduled_for: datetime, default_timezone: str, full_acts_as: str
) -> OutgoingJob:
    """Return the job of a submitted decision."""
    row = decision.row
    return _job_of_row(
        row,
        full_acts_as,
        id=job,
        scheduled_for=scheduled_for,
        origin=decision.origin,
        timezone=row.timezone or default_timezone,
        checked=True,
        due_at=decision.due_at or scheduled_for,
        catchup_window=row.catchup_window,
    )


def job_at_once(row: AtOnce) -> OutgoingJob:
    """Return the job that a mark has submitted at once."""
    return _job_of_row(
        row,
        "full",
        id=row.job,
        scheduled_for=row.planned_for,
        origin="schedule",
        timezone=row.timezone,
        checked=True,
        due_at=row.next_run_at,
        catchup_window=row.catchup_window,
    )


def job_of_backfill(row: BackfillRow, job: uuid.UUID, scheduled_for: datetime, full_acts_as: str) -> OutgoingJob:
    """Return one job of a submitted step of a backfill."""
    return _job_of_row(row, full_acts_as, id=job, scheduled_for=scheduled_for, origin="backfill", timezone=row.timezone)


def job_of_recovered(job: Recovered) -> OutgoingJob:
    """Return a job that this beat has taken over."""
    return OutgoingJob(
        id=job.id,
        periodic_task=job.periodic_task,
        scheduled_for=job.scheduled_for,
        origin=job.origin,
        run=job.run,
        task=job.task,
        queue=job.queue,
        max_run_time=job.max_run_time,
        message=job.message or "{}",
        due_at=job.due_at,
        catchup_window=job.catchup_window,
        sends=job.sends,
        tracking=job.tracking,
    )


def read_texts(job: OutgoingJob) -> None:
    """Read the JSON of a job, from which its message is made.

    Raises:
        InvalidPeriodicTask: it has a queue, options or arguments that a periodic task cannot have.
        Exception: whatever reading a text of the row raises.
    """
    if job.message is not None:
        _read_message(job, json.loads(job.message))
    if not job.checked:
        check_sendable(job.queue, job.options_text, job.args, job.kwargs)
    if job.options_text != "{}":
        job.options = json.loads(job.options_text)
    if job.due_at is not None and job.catchup_window is not None:
        job.send_by = job.due_at + min(job.catchup_window, LONGEST_WINDOW)


def _job_of_row(row: Due | AtOnce | BackfillRow, full_acts_as: str, **of_the_job: Any) -> OutgoingJob:
    return OutgoingJob(
        periodic_task=row.name,
        task=row.task,
        args=row.args,
        kwargs=row.kwargs,
        queue=row.queue,
        priority=row.priority,
        sensitive=row.sensitive,
        max_run_time=row.max_run_time,
        schedule=row.schedule,
        options_text=row.options,
        tracking=full_acts_as if row.tracking == "full" else row.tracking,
        **of_the_job,
    )


def _read_message(job: OutgoingJob, message: dict[str, Any]) -> None:
    job.args = json.dumps(message["args"])
    job.kwargs = json.dumps(message["kwargs"])
    job.options_text = json.dumps(message["options"])
    job.priority = message["priority"]
    job.sensitive = message["sensitive"]
    job.schedule = message["schedule"]
    job.timezone = message["timezone"]
