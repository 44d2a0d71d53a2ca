"""The spans of one beat's ticks and messages, made of its events.

If other code traces the sending too, as opentelemetry-instrumentation-celery does where it is switched on in a beat,
its span is a child of the job's, and the message carries its context instead: one trace in any case.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from celery.app.routes import MapRoute

from celery_pgbeat.measures.observer import Observer
from celery_pgbeat.measures.spans import Spans

if TYPE_CHECKING:
    from celery_pgbeat.beat.send.messages import OutgoingJob
    from celery_pgbeat.beat.send.publisher import Published
    from celery_pgbeat.planning import Decision
    from celery_pgbeat.postgres.beat_queries import Marked, Recovered, Submitted

# Brokers that OpenTelemetry's conventions call otherwise than kombu does.
SYSTEMS = {"amqp": "rabbitmq", "sqs": "aws_sqs", "gcpubsub": "gcp_pubsub", "azureservicebus": "servicebus"}
ROUTED = 1000  # tasks whose queue is remembered


class Tracing(Observer):
    """Traces one beat.

    Args:
        spans: the beat's.
        app: the Celery app, for the queue that a task is routed to.
        beat: the beat's id.
        now: the database's time, as the beat knows it.
    """

    def __init__(self, spans: Spans, app: Any, beat: str, now: Callable[[], datetime]) -> None:
        self._spans = spans
        self._app = app
        self._beat = beat
        self._now = now
        self._of_jobs: dict[uuid.UUID, Any] = {}
        self._routed = lru_cache(ROUTED)(self._queue_of_task)

    def looked(self) -> None:
        """End the cycle's part in the tick before."""
        self._spans.end_cycle()

    def marked(self, rows: Marked, began: int) -> None:
        """Begin a tick if anything is due, with the jobs that were submitted at once."""
        self._spans.end_cycle()
        jobs = {row.job: row.next_run_at for row in rows.at_once}
        if rows.marked_at is not None:
            counts = {"beat": self._beat, "due": len(rows.due) + len(jobs), "at_once": len(jobs)}
            self._spans.submitted(self._spans.begin("tick", "mark", began, rows.marked_at, counts), jobs)

    @contextmanager
    def submitting(self, decisions: Sequence[Decision], answers: list[Submitted]) -> Iterator[None]:
        """Make a phase of a submit, and one of the planning before it."""
        tick = self._spans.tick_at(decisions[0].row.marked_at) if decisions else None
        self._spans.planned(tick, {"decisions": len(decisions)})
        with self._spans.phase(tick, "submit", {"decisions": len(decisions)}) as counts:
            yield
            made = {answer.name for answer in answers if answer.made and not answer.waits}
            counts["jobs"] = len(made)
            counts["submitted"] = len(answers)
        jobs = {one.job: one.due_at for one in decisions if one.job is not None and one.row.name in made}
        self._spans.submitted(tick, jobs)

    @contextmanager
    def publishing(self, jobs: Sequence[OutgoingJob], driver: str, published: Published) -> Iterator[None]:
        """Make a phase of the publish, and a span for each job, whose context its message carries."""
        system = SYSTEMS.get(driver, driver)
        self._of_jobs = self._spans.begin_jobs(jobs, self._now(), system, [self._queue_of(job) for job in jobs])
        counts = {
            "messaging.system": system,
            "messaging.operation.type": "send",
            "messaging.operation.name": "publish",
            "messaging.batch.message_count": len(jobs),
        }
        try:
            with self._spans.phase(self._spans.tick_of(jobs[0].id), "publish", counts) as counts:
                yield
                counts.update(sent=len(published.sent), refused=len(published.refused), unsent=len(published.unsent))
        finally:
            errors = {refusal.job: refusal.error for refusal in published.refused}
            self._spans.end_jobs(self._of_jobs, {job for job, _ in published.sent}, errors)
            self._of_jobs = {}

    def sending(self, job: uuid.UUID) -> AbstractContextManager[None]:
        """Make the job's span the parent of what other code traces meanwhile."""
        return self._spans.current(self._of_jobs.get(job))

    @contextmanager
    def confirming(self, sent: Sequence[tuple[uuid.UUID, float]], locked: set[uuid.UUID]) -> Iterator[None]:
        """Make a phase of a confirm; jobs whose rows were locked stay unsettled."""
        tick = self._spans.tick_of(sent[0][0]) if sent else None
        with self._spans.phase(tick, "confirm", {"jobs": len(sent)}) as counts:
            yield
            counts["locked"] = len(locked)
        self._spans.settle(job for job, _ in sent if job not in locked)

    def recovered(self, rows: Sequence[Recovered], began: int) -> None:
        """Begin a trace if any job was taken over."""
        self._spans.end_cycle()
        if rows:
            jobs: dict[uuid.UUID, datetime | None] = {row.id: None for row in rows if row.reason is None}
            counts = {"beat": self._beat, "recovered": len(jobs), "skipped": len(rows) - len(jobs)}
            self._spans.submitted(self._spans.begin("recover", "recover", began, None, counts), jobs)

    def refused(self, jobs: Sequence[uuid.UUID], lost: int) -> None:
        """Settle these jobs."""
        del lost
        self._spans.settle(jobs)

    def skipped(self, jobs: Sequence[uuid.UUID], reason: str, count: int) -> None:
        """Settle these jobs."""
        del reason, count
        self._spans.settle(jobs)

    def settled(self, jobs: Sequence[uuid.UUID]) -> None:
        """Settle these jobs."""
        self._spans.settle(jobs)

    def _queue_of(self, job: OutgoingJob) -> str | None:
        """Return the queue that a job goes to, None where that is not known from its row and its task's name."""
        if job.options and ("exchange" in job.options or "routing_key" in job.options):
            return None
        return job.queue or self._routed(job.task)

    def _queue_of_task(self, name: str) -> str | None:
        router, task = self._app.amqp.router, self._app.tasks.get(name)
        if not all(type(route) is MapRoute for route in router.routes):  # others look at the arguments
            return None
        wishes = {wish: getattr(task, wish, None) for wish in ("queue", "exchange", "routing_key")}
        route = router.route({wish: value for wish, value in wishes.items() if value}, name)
        return getattr(route.get("queue"), "name", None)
