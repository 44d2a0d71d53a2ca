"""Publishing into a list: the whole way to the broker except the last step, Celery's own `send_task`.

So the beat makes a job's options and its late arguments (`BeatLazyFunc`), calls the task class's `apply_async`, checks
the signature and follows the routes. What Celery does only while it writes a message does not happen: it sends no
signal `before_task_publish`, and does not ask the result backend.
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

from celery_pgbeat.beat.send.messages import HEADER, OutgoingJob
from celery_pgbeat.beat.send.publisher import Published
from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.testing.temporary_schema import Clock

# What Celery passes to `send_task` besides the message's options.
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


class Recorder(Observer):
    """Observes what a beat publishes: keeps the messages of the jobs, so that none leaves the app, and the refusals."""

    def __init__(self, app: Celery, clock: Clock, sent: list[Sent], refused: list[Refused]) -> None:
        self._app = app
        self._clock = clock
        self._sent = sent
        self._refused = refused

    @contextmanager
    def publishing(self, jobs: Sequence[OutgoingJob], driver: str, published: Published) -> Iterator[None]:
        """Record what would be sent, and why something could not be."""
        del jobs, driver
        with self._recording():
            yield
        self._refused += [Refused(refusal.periodic_task, refusal.job, refusal.error) for refusal in published.refused]

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Replace the app's `send_task`, also in tests that run tasks in place of sending them."""
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
            if ours is None:  # sent by the task's own `apply_async`, in addition to the job
                return really(name, args, kwargs, *rest, **options)
            self._record(name, list(args or ()), dict(kwargs or {}), ours, options)
            return (options.get("result_cls") or self._app.AsyncResult)(options["task_id"])

        return send_task

    def _record(
        self, task: str, args: list[Any], kwargs: dict[str, Any], ours: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        serializer = options.get("serializer") or self._app.conf.task_serializer
        dumps((args, kwargs), serializer)  # type: ignore[no-untyped-call]
        given = {name: value for name, value in options.items() if value is not None and name not in NO_OPTIONS}
        routed = self._app.amqp.router.route(dict(given), task, args, kwargs, options.get("task_type"))
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
