"""From a job to the arguments of Celery's own `apply_async`.

The job has everything that its message needs, so an edit of the periodic task after the submit does not change it.
"""

from __future__ import annotations

import json
import numbers
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache
from typing import Any

from celery import Celery
from celery.schedules import BaseSchedule
from kombu.utils.json import object_hook

from celery_pgbeat.beat.entries import RowEntry, shown_schedule
from celery_pgbeat.declare.options import CELERY_HEADERS, read_instant
from celery_pgbeat.texts.redaction import MASKED, error_text

HEADER = "pgbeat"
# A row's own options must not block the beat, because that would delay every other row.
RETRY_POLICY = {"max_retries": 3, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}
LONGEST_TIMEOUT = 5.0  # seconds
_DECODER = json.JSONDecoder(object_hook=object_hook)  # that of kombu's `loads`, which makes one for each text
HARD_LIMIT_MARGIN = timedelta(seconds=60)  # a task that ignores the soft limit has at most this much longer


@dataclass(slots=True, kw_only=True)  # not frozen: a beat makes thousands a second
class OutgoingJob:
    """One job to be sent. Its delivery reads the JSON (`read_texts`) before its message is made.

    Attributes:
        args: JSON, as `kwargs` is.
        options_text: JSON.
        options: read from that.
        message: of a recovered job, JSON in place of arguments, options, priority, schedule and time zone.
        checked: whether the texts were checked when the job was decided.
        due_at: None where nothing limits how late it may be sent.
        catchup_window: how much later than `due_at` it may be sent; None for any time.
        send_by: the end of that window, once the texts were read; it is not sent later than that.
        sends: how often a beat has begun to send it, this time included.
        tracking: that of the job, which differs from its row's where `full` acts as another. Under `send` workers
            neither guard nor track it, and its message says so.
        trace: headers by which the worker's span joins this job's trace.
    """

    id: uuid.UUID
    periodic_task: str
    scheduled_for: datetime
    origin: str
    run: int = 0
    task: str
    args: str = field(default="[]", repr=False)
    kwargs: str = field(default="{}", repr=False)
    queue: str | None
    priority: int | None = None
    sensitive: bool = False
    max_run_time: timedelta | None
    schedule: str | None = None
    timezone: str | None = None
    options_text: str = field(default="{}", repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    message: str | None = field(default=None, repr=False)
    checked: bool = False
    due_at: datetime | None = None
    catchup_window: timedelta | None = None
    send_by: datetime | None = None
    sends: int = 1
    tracking: str = "full"
    trace: Mapping[str, str] | None = None


class Refused(str, Enum):
    """What failed when a job was to be sent."""

    NO_MESSAGE = "its message cannot be made"  # an error of ours or of Celery's checks; the broker was not asked
    BY_BROKER = "refused by the broker"
    BREAKS_CONNECTION = "its message breaks the connection to the broker"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job whose message cannot be made, or that the broker refuses, and why."""

    job: uuid.UUID
    periodic_task: str
    error: BaseException
    sensitive: bool = False
    what: Refused = Refused.NO_MESSAGE

    @property
    def reason(self) -> str:
        """What failed, and the error in one line; only its class if its text might quote a sensitive argument."""
        return f"{self.what.value}: {error_text(self.error, self.sensitive)}"


class JobEntry(RowEntry):
    """A job as an entry, which Celery's scheduler and whatever wraps it expect."""

    def __init__(self, job: OutgoingJob, app: Celery, now: datetime, lazy: tuple[Any, Any] | None = None) -> None:
        self.app = app
        self.job = job
        self.sensitive = job.sensitive
        self.name = job.periodic_task
        self.task = job.task
        self.args, self.kwargs = lazy or arguments_of(job.args, job.kwargs)
        self.options = options_of(job, now)
        self.last_run_at = job.scheduled_for
        self.total_run_count = 0
        self.delay = delay_of(self.options, now)  # seconds until the message may start
        self.error: BaseException | None = None
        self.is_published = False  # whether a message was published, if that was watched
        self.has_returned = False  # whether the result of the task's `apply_async` arrived here
        self.returned: Any = None

    @property
    def schedule(self) -> BaseSchedule:
        """The schedule, for monitors."""
        job = self.job
        return shown_schedule(job.schedule, job.timezone, job.periodic_task, job.scheduled_for, self.app)


def arguments_of(args: str, kwargs: str) -> tuple[Any, Any]:
    """Read args and kwargs from JSON, and Celery's types in them."""
    return decoded(args), {} if kwargs == "{}" else decoded(kwargs)


def decoded(text: str) -> Any:
    """Read a value from JSON, and Celery's types in it."""
    # Postgres writes no blanks around a value. To read a value and nothing else takes half the time.
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        end = -1
    return value if end == len(text) else _DECODER.decode(text)


def instant_text(instant: datetime) -> str:
    """Write an instant for our header."""
    return _shown(instant if instant.tzinfo is timezone.utc else instant.astimezone(timezone.utc))


_shown = lru_cache(maxsize=256)(datetime.isoformat)  # of many rows, which are due at the same instants


def options_of(job: OutgoingJob, now: datetime) -> dict[str, Any]:
    """Return the options for `apply_async`; durations become instants by the database's clock.

    Celery's own headers are left out: one of them could call another task than the one that was allowed. For the
    arguments of a sensitive row Celery shows our mask, whatever the row's own options are.
    """
    options = dict(job.options)
    options["task_id"] = str(job.id)
    options.setdefault("retry", False)
    if options["retry"]:
        options["retry_policy"] = {**(options.get("retry_policy") or {}), **RETRY_POLICY}
    for name in ("timeout", "confirm_timeout"):
        if options.get(name) is not None:
            options[name] = min(float(options[name]), LONGEST_TIMEOUT)
    if job.queue is not None:
        options["queue"] = job.queue
    if job.priority is not None:
        options["priority"] = job.priority
    if job.max_run_time is not None:
        hard = min(job.max_run_time * 2, job.max_run_time + HARD_LIMIT_MARGIN)
        options.setdefault("soft_time_limit", job.max_run_time.total_seconds())
        options.setdefault("time_limit", hard.total_seconds())
    if isinstance(options.get("expires"), numbers.Real):
        options["expires"] = now + timedelta(seconds=float(options["expires"]))
    countdown = options.pop("countdown", None)
    if countdown:
        options["eta"] = now + timedelta(seconds=float(countdown))
    elif isinstance(options.get("eta"), str):
        options["eta"] = read_instant(options["eta"])
    if isinstance(options.get("expires"), str):
        options["expires"] = read_instant(options["expires"])
    if job.sensitive:
        options.update(MASKED)
    headers = {name: value for name, value in (options.get("headers") or {}).items() if name not in CELERY_HEADERS}
    if job.trace:
        headers.pop("tracestate", None)  # the row's own would be read as part of our trace
        headers.update(job.trace)
    options["headers"] = {
        **headers,
        "periodic_task_name": job.periodic_task,
        HEADER: {
            "periodic_task": job.periodic_task,
            "job": str(job.id),
            "scheduled_for": instant_text(job.scheduled_for),
            "origin": job.origin,
            "run": job.run,
            **({"sensitive": True} if job.sensitive else {}),
            **({"tracking": "send"} if job.tracking == "send" else {}),
        },
    }
    return options


def delay_of(options: Mapping[str, Any], now: datetime) -> float:
    """Return the seconds until a message with these options may start."""
    eta = options.get("eta")
    return max(0.0, (eta - now).total_seconds()) if isinstance(eta, datetime) else 0.0
