"""A publisher whose messages carry on a trace: each job gets a span, and the message its context.

If somebody else traces the sending too, as opentelemetry-instrumentation-celery does where it is switched on in a beat,
its span is a child of the job's, and the message carries its context instead: one trace in any case.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from celery.app.routes import MapRoute

from celery_pgbeat.beat.database_clock import DatabaseClock
from celery_pgbeat.beat.send.broker import Sender
from celery_pgbeat.beat.send.messages import JobEntry, OutgoingJob
from celery_pgbeat.beat.send.publisher import Published, Publisher

if TYPE_CHECKING:
    from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
    from celery_pgbeat.measures.spans import Spans

# What kombu calls a broker, and what OpenTelemetry's conventions do; the rest is called alike.
SYSTEMS = {"amqp": "rabbitmq", "sqs": "aws_sqs", "gcpubsub": "gcp_pubsub", "azureservicebus": "servicebus"}
ROUTED = 1000  # tasks whose queue is remembered


class TracingPublisher(Publisher):
    """Publishes as a publisher does, and notes it in spans."""

    def __init__(
        self,
        sender: Sender,
        watch: DatabaseClock,
        code: CodeSchedules,
        stopping: Callable[[], bool] = lambda: False,
        ring: Callable[[], None] = lambda: None,
        *,
        spans: Spans,
    ) -> None:
        super().__init__(sender, watch, code, stopping, ring)
        self._spans = spans
        self._of_jobs: dict[uuid.UUID, Any] = {}
        self._routed = lru_cache(ROUTED)(self._queue_of_task)

    def publish(self, jobs: Sequence[OutgoingJob], lease_ends: float) -> Published:
        """Publish as a publisher does."""
        producer = self._broker.producer
        if producer is None or not jobs:
            return super().publish(jobs, lease_ends)
        driver = str(producer.connection.transport.driver_type)
        system = SYSTEMS.get(driver, driver)
        now = self._watch.database_time
        self._of_jobs = self._spans.begin_jobs(jobs, now, system, [self._queue_of(job) for job in jobs])
        counts = {
            "messaging.system": system,
            "messaging.operation.type": "send",
            "messaging.operation.name": "publish",
            "messaging.batch.message_count": len(jobs),
        }
        answer = Published(unsent=[job.id for job in jobs])
        try:
            with self._spans.phase(self._spans.tick_of(jobs[0].id), "publish", counts) as counts:
                answer = super().publish(jobs, lease_ends)
                counts.update(sent=len(answer.sent), refused=len(answer.refused), unsent=len(answer.unsent))
        finally:
            errors = {refusal.job: refusal.error for refusal in answer.refused}
            self._spans.end_jobs(self._of_jobs, {job for job, _ in answer.sent}, errors)
            self._of_jobs = {}
        return answer

    def _applied(self, job: OutgoingJob, answer: Published) -> JobEntry | None:
        with self._spans.current(self._of_jobs.get(job.id)):
            return super()._applied(job, answer)

    def _queue_of(self, job: OutgoingJob) -> str | None:
        """Return the queue that a job goes to, None where that is not known from its row and its task's name."""
        if job.options and ("exchange" in job.options or "routing_key" in job.options):
            return None
        return job.queue or self._routed(job.task)

    def _queue_of_task(self, name: str) -> str | None:
        app = self._sender.app
        router, task = app.amqp.router, app.tasks.get(name)
        if not all(type(route) is MapRoute for route in router.routes):  # others look at the arguments
            return None
        wishes = {wish: getattr(task, wish, None) for wish in ("queue", "exchange", "routing_key")}
        route = router.route({wish: value for wish, value in wishes.items() if value}, name)
        return getattr(route.get("queue"), "name", None)
