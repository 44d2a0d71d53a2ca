"""Publishing into a list: all of the way to the broker but the last step, which is Celery's own `send_task`.

So a job's options are made by the beat, arguments that are made late (`BeatLazyFunc`) are, the task class's
`apply_async` is called, its signature is checked and its routes are followed. What happens only in a message that is
written does not: no signal `before_task_publish`, nothing asked of the result backend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from unittest.mock import patch
from uuid import UUID

from celery import Celery
from kombu.serialization import dumps

from celery_pgbeat.beat.database_clock import DatabaseClock
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.beat.send.broker import Broker
from celery_pgbeat.beat.send.messages import HEADER, OutgoingJob
from celery_pgbeat.beat.send.publisher import Published, Publisher
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.testing.temporary_schema import Clock

# What Celery hands on beside the message's options.
NO_OPTIONS = ("connection", "producer", "result_cls", "router", "task_id", "task_type")


@dataclass(frozen=True, slots=True)
class Sent:
    """One message that the broker would have got.

    Attributes:
        scheduled_for: the occurrence, in UTC.
        sent_at: what the clock showed when it was sent, in UTC.
        queue: into which Celery routes it.
        id: of the job and of the Celery task.
        origin: `schedule`, `catchup`, `backfill` or `manual`.
        run: 0, and one more after each `rerun`.
        options: all others of `apply_async`: `eta`, `expires`, `priority`, `time_limit`, `headers`, …
    """

    periodic_task: str
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    queue: str
    scheduled_for: datetime
    sent_at: datetime
    id: UUID
    origin: str
    run: int
    options: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """One job of which there can be no message: a beat tries it three times, then it is lost."""

    periodic_task: str
    id: UUID
    error: BaseException


class NullBroker(Broker):
    """The broker, always there; whatever goes wrong is the message's own fault."""

    def __init__(self, sender: Scheduler) -> None:
        super().__init__(sender, lambda _: None)
        self.producer = object()

    def ready(self) -> bool:
        """Tell that it is there."""
        return True

    def is_ready_within(self, seconds: float) -> bool:
        """Tell that it is ready, at once."""
        del seconds
        return self.ready()

    def is_connection_error(self, error: BaseException) -> bool:
        """Tell that there is no connection that could fail."""
        del error
        return False


class RecordingPublisher(Publisher):
    """The beat's publisher, with two lists in the place of the broker."""

    def __init__(
        self,
        app: Celery,
        clock: Clock,
        watch: DatabaseClock,
        code: CodeSchedules,
        sent: list[Sent],
        refused: list[Refused],
    ) -> None:
        sender = Scheduler(app, lazy=True)
        super().__init__(sender, watch, code)
        self._broker = NullBroker(sender)
        self._app = app
        self._clock = clock
        self._sent = sent
        self._refused = refused

    def publish(self, jobs: Sequence[OutgoingJob], lease_ends: float) -> Published:
        """Record what would be sent, and why something could not be."""
        with self._recording():
            answer = super().publish(jobs, lease_ends)
        self._refused += [Refused(refusal.periodic_task, refusal.job, refusal.error) for refusal in answer.refused]
        return answer

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Stand in the way of what leaves the app, and of tests that run tasks in place of sending them."""
        conf, eager = self._app.conf, self._app.conf.task_always_eager
        if eager:
            conf.task_always_eager = False
        try:
            with patch.object(self._app, "send_task", self._send_task(self._app.send_task)):
                yield
        finally:
            if eager:
                conf.task_always_eager = eager

    def _send_task(self, really: Any) -> Any:
        def send_task(name: str, args: Any = None, kwargs: Any = None, *rest: Any, **options: Any) -> Any:
            ours = (options.get("headers") or {}).get(HEADER)
            if ours is None:  # sent by somebody's own `apply_async`, beside the job
                return really(name, args, kwargs, *rest, **options)
            self._record(name, list(args or ()), dict(kwargs or {}), ours, options)
            return (options.get("result_cls") or self._app.AsyncResult)(options["task_id"])

        return send_task

    def _record(
        self, task: str, args: list[Any], kwargs: dict[str, Any], ours: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        serializer = options.get("serializer") or self._app.conf.task_serializer
        dumps((args, kwargs), serializer)  # type: ignore[no-untyped-call]
        said = {name: value for name, value in options.items() if value is not None and name not in NO_OPTIONS}
        routed = self._app.amqp.router.route(dict(said), task, args, kwargs, options.get("task_type"))
        queue = routed.pop("queue", None)
        self._sent.append(
            Sent(
                periodic_task=ours["periodic_task"],
                task=task,
                args=args,
                kwargs=kwargs,
                queue=str(getattr(queue, "name", queue) or routed.get("routing_key") or ""),
                scheduled_for=datetime.fromisoformat(ours["scheduled_for"]).astimezone(timezone.utc),
                sent_at=self._clock.now,
                id=UUID(ours["job"]),
                origin=ours["origin"],
                run=ours["run"],
                options=routed,
            )
        )
