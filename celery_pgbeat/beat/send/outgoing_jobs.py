"""Orders: the jobs that a decision, a recovery or a step of a backfill has sent, as plain data.

A row may contain what cannot become a message. So the delivery reads the texts, and an error refuses that one job.
"""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from typing import NamedTuple

from celery_pgbeat.beat.send.messages import OutgoingJob
from celery_pgbeat.declare.sendable import check_sendable
from celery_pgbeat.planning import BackfillRow, Decision, Due
from celery_pgbeat.postgres.beat_queries import AtOnce, Recovered

LONGEST_WINDOW = timedelta(days=36_500)  # the end of a longer one may be later than any datetime


class Order(NamedTuple):  # a frozen dataclass takes longer to make, and a beat makes thousands a second
    """One submitted job that is to be sent; `args`, `kwargs`, `options` and `message` are JSON.

    Attributes:
        checked: whether the texts were checked when the job was decided.
        due_at: None where nothing limits how late it may be sent.
        catchup_window: how much later than `due_at` it may be sent; None for any time.
        sends: how often a beat has begun to send it, this time included.
        tracking: that of the job, which differs from its row's where `full` acts as another.
        message: of a recovered job, in place of arguments, options, priority, schedule and time zone.
    """

    id: uuid.UUID
    periodic_task: str
    scheduled_for: datetime
    origin: str
    run: int
    task: str
    args: str
    kwargs: str
    queue: str | None
    priority: int | None
    sensitive: bool
    max_run_time: timedelta | None
    schedule: str | None
    timezone: str | None
    options: str = "{}"
    checked: bool = False
    due_at: datetime | None = None
    catchup_window: timedelta | None = None
    sends: int = 1
    tracking: str = "full"
    message: str | None = None


def order_of_decision(
    decision: Decision, job: uuid.UUID, scheduled_for: datetime, default_timezone: str, full_acts_as: str
) -> Order:
    """Return the order for the job of a submitted decision."""
    row = decision.row
    timezone, due_at = row.timezone or default_timezone, decision.due_at or scheduled_for
    return _order_of_row(
        row,
        job,
        scheduled_for,
        decision.origin,
        timezone,
        full_acts_as,
        checked=True,
        due_at=due_at,
        window=row.catchup_window,
    )


def order_at_once(row: AtOnce) -> Order:
    """Return the order for a job that a mark has submitted at once."""
    due_at = row.next_run_at
    return _order_of_row(
        row, row.job, due_at, "schedule", row.timezone, "full", checked=True, due_at=due_at, window=row.catchup_window
    )


def order_of_backfill(row: BackfillRow, job: uuid.UUID, scheduled_for: datetime, full_acts_as: str) -> Order:
    """Return the order for one job of a submitted step of a backfill."""
    return _order_of_row(row, job, scheduled_for, "backfill", row.timezone, full_acts_as)


def order_of_recovered(job: Recovered) -> Order:
    """Return the order for a job that this beat has taken over."""
    return Order(
        id=job.id,
        periodic_task=job.periodic_task,
        scheduled_for=job.scheduled_for,
        origin=job.origin,
        run=job.run,
        task=job.task,
        args="",
        kwargs="",
        queue=job.queue,
        priority=None,
        sensitive=False,
        max_run_time=job.max_run_time,
        schedule=None,
        timezone=None,
        due_at=job.due_at,
        catchup_window=job.catchup_window,
        sends=job.sends,
        tracking=job.tracking,
        message=job.message or "{}",
    )


def outgoing_job(order: Order) -> OutgoingJob:
    """Make the job of an order, from which its message is made.

    Raises:
        InvalidPeriodicTask: it has a queue, options or arguments that a periodic task cannot have.
        Exception: whatever reading a text of the row raises.
    """
    if order.message is not None:
        order = _with_message(order, order.message)
    if not order.checked:
        check_sendable(order.queue, order.options, order.args, order.kwargs)
    options = {} if order.options == "{}" else json.loads(order.options)
    due_at, window = order.due_at, order.catchup_window
    send_by = None if due_at is None or window is None else due_at + min(window, LONGEST_WINDOW)
    return OutgoingJob(  # by position: with so many keywords the call takes twice as long
        order.id,
        order.periodic_task,
        order.scheduled_for,
        order.origin,
        order.run,
        order.task,
        order.args,
        order.kwargs,
        order.queue,
        order.priority,
        order.sensitive,
        order.max_run_time,
        order.schedule,
        order.timezone,
        options,
        send_by,
        order.sends,
        order.tracking,
    )


def _order_of_row(
    row: Due | AtOnce | BackfillRow,
    job: uuid.UUID,
    scheduled_for: datetime,
    origin: str,
    timezone: str | None,
    full_acts_as: str,
    *,
    checked: bool = False,
    due_at: datetime | None = None,
    window: timedelta | None = None,
) -> Order:
    return Order(
        job,
        row.name,
        scheduled_for,
        origin,
        0,
        row.task,
        row.args,
        row.kwargs,
        row.queue,
        row.priority,
        row.sensitive,
        row.max_run_time,
        row.schedule,
        timezone,
        row.options,
        checked,
        due_at,
        window,
        1,
        full_acts_as if row.tracking == "full" else row.tracking,
    )


def _with_message(order: Order, message: str) -> Order:
    read = json.loads(message)
    return order._replace(
        args=json.dumps(read["args"]),
        kwargs=json.dumps(read["kwargs"]),
        options=json.dumps(read["options"]),
        priority=read["priority"],
        sensitive=read["sensitive"],
        schedule=read["schedule"],
        timezone=read["timezone"],
    )
