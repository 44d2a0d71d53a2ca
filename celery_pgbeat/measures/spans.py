"""The spans of OpenTelemetry for what a beat does. Only the modules with spans import its API, which is an extra.

A *tick* is a trace: a span for the batch, and in it one span for each phase, with counts. A *job* is a trace of its
own: its first span has the decision and links to the tick, and its message carries its context, so that the worker's
spans belong to it. If all jobs of a tick were in one trace, a batch would be more than a backend shows, and a sampler
would keep all of it or nothing.

Several threads work on a tick, so no context is taken from a thread: a tick is found by the instant of its mark, or by
its jobs.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, StatusCode

from celery_pgbeat import __version__

if TYPE_CHECKING:
    from celery_pgbeat.beat.send.messages import OutgoingJob

MOST_OPEN = 256  # ticks: two are decided or sent at a time, and up to 250 messages wait for their confirm
ROOT = Context()  # no parent, whatever is current in the calling thread
KINDS = {"publish": SpanKind.CLIENT, "job": SpanKind.PRODUCER}

Attributes = dict[str, Any]


class Tick:
    """One batch, from its mark to its last confirm."""

    def __init__(self, span: Span, marked_at: datetime | None) -> None:
        self.marked_at = marked_at
        self.context = trace.set_span_in_context(span, ROOT)
        self.links = [Link(span.get_span_context())] if span.get_span_context().is_valid else []
        self.is_recorded = span.is_recording()
        self.planned_from: int | None = None  # the end of the mark, until something is submitted
        self.ended_at = 0
        self.jobs = 0
        self.unsettled = 0
        self._cycle_is_over = False
        self._span: Span | None = span

    def cycle_is_over(self) -> None:
        """Note that its cycle has done all it does for it."""
        self._cycle_is_over = True
        self.settle(0)

    def settle(self, jobs: int) -> None:
        """Note that a number of jobs are settled; the last one ends the tick."""
        self.unsettled -= jobs
        if self._cycle_is_over and not self.unsettled:
            self.end()

    def end(self) -> None:
        """End the span, as of the end of the last phase."""
        span, self._span = self._span, None
        if span is not None:
            span.set_attribute("celery_pgbeat.jobs", self.jobs)
            if self.unsettled:
                span.set_attribute("celery_pgbeat.unsettled", self.unsettled)
            span.end(self.ended_at)


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A submitted job that is not settled yet: its tick, and when it was due if that is known."""

    tick: Tick
    due_at: datetime | None


class Spans:
    """The spans of one beat."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("celery_pgbeat", __version__)
        self._lock = threading.Lock()
        self._open: deque[Tick] = deque()
        self._current: Tick | None = None  # the tick of the cycle under way
        self._unsettled: dict[uuid.UUID, Unsettled] = {}

    def begin(self, name: str, phase: str, began: int, marked_at: datetime | None, counts: Attributes) -> Tick:
        """Begin a tick with its first phase, which is over: only its result showed that there is anything to do."""
        span = self._tracer.start_span(f"pgbeat {name}", ROOT, attributes=_named(counts), start_time=began)
        tick = Tick(span, marked_at)
        tick.planned_from = time.time_ns()
        self._phase(tick, phase, began, tick.planned_from, counts)
        with self._lock:
            self._current = tick
            self._open.append(tick)
            while len(self._open) > MOST_OPEN:
                self._give_up(self._open.popleft())
        return tick

    def end_cycle(self) -> None:
        """Note that the cycle has finished with the tick that it began."""
        with self._lock:
            tick, self._current = self._current, None
            if tick is not None:
                tick.cycle_is_over()

    def tick_at(self, marked_at: datetime) -> Tick | None:
        """Return the tick of a mark."""
        return next((tick for tick in reversed(self._open) if tick.marked_at == marked_at), None)

    def tick_of(self, job: uuid.UUID) -> Tick | None:
        """Return the tick that a job is sent in."""
        known = self._unsettled.get(job)
        return None if known is None else known.tick

    def planned(self, tick: Tick | None, counts: Attributes) -> None:
        """Note the end of the planning; decisions that are submitted again were planned before."""
        if tick is not None and tick.planned_from is not None:
            began, tick.planned_from = tick.planned_from, None
            self._phase(tick, "plan", began, time.time_ns(), counts)

    @contextmanager
    def phase(self, tick: Tick | None, name: str, counts: Attributes) -> Iterator[Attributes]:
        """Make a phase of the block, which may add counts."""
        began, error = time.time_ns(), None
        try:
            yield counts
        except Exception as raised:
            error = raised
            raise
        finally:
            self._phase(tick, name, began, time.time_ns(), counts, error)

    def submitted(self, tick: Tick | None, jobs: Mapping[uuid.UUID, datetime | None]) -> None:
        """Remember jobs of a tick, each with the instant at which it was due, until they are settled."""
        if tick is None:
            return
        with self._lock:
            tick.jobs += len(jobs)
            tick.unsettled += len(jobs)
            self._unsettled.update((job, Unsettled(tick, due_at)) for job, due_at in jobs.items())

    def settle(self, jobs: Iterable[uuid.UUID]) -> None:
        """Note that these jobs are settled."""
        with self._lock:
            for job in jobs:
                known = self._unsettled.pop(job, None)
                if known is not None:
                    known.tick.settle(1)

    def begin_jobs(
        self, jobs: Sequence[OutgoingJob], now: datetime, system: str, destinations: Sequence[str | None]
    ) -> dict[uuid.UUID, Span]:
        """Begin the spans of jobs whose messages are about to be made, and put their context into the messages."""
        spans: dict[uuid.UUID, Span] = {}
        for job, destination in zip(jobs, destinations, strict=True):
            known = self._unsettled.get(job.id)
            attributes: Attributes = {  # a sampler may use these
                "messaging.system": system,
                "messaging.operation.type": "create",
                "messaging.operation.name": "create",
                "celery.task_name": job.task,
                "celery_pgbeat.periodic_task": job.periodic_task,
                "celery_pgbeat.origin": job.origin,
                "celery_pgbeat.run": job.run,
            }
            if destination is not None:
                attributes["messaging.destination.name"] = destination
            links = None if known is None else known.tick.links
            span = self._tracer.start_span(f"create {job.task}", ROOT, KINDS["job"], attributes, links)
            if span.is_recording():
                due_at = job.scheduled_for if known is None or known.due_at is None else known.due_at
                span.set_attributes(
                    {
                        "messaging.message.id": str(job.id),
                        "celery_pgbeat.job": str(job.id),
                        "celery_pgbeat.scheduled_for": job.scheduled_for.astimezone(timezone.utc).isoformat(),
                        "celery_pgbeat.lateness": max(0.0, (now - due_at).total_seconds()),
                    }
                )
            headers: dict[str, str] = {}
            propagate.inject(headers, trace.set_span_in_context(span, ROOT))
            job.trace = headers or None
            spans[job.id] = span
        return spans

    def end_jobs(
        self, spans: Mapping[uuid.UUID, Span], sent: Collection[uuid.UUID], errors: Mapping[uuid.UUID, BaseException]
    ) -> None:
        """End the spans of jobs, each with the outcome of its message."""
        for job, span in spans.items():
            if not span.is_recording():
                continue
            error = errors.get(job)
            if error is not None:
                _blame(span, error)
            outcome = "refused" if error is not None else "sent" if job in sent else "unsent"
            span.set_attribute("celery_pgbeat.outcome", outcome)
            span.end()

    @contextmanager
    def current(self, span: Span | None) -> Iterator[None]:
        """Make a span the parent of spans that other code makes in the block, if it traces the sending."""
        token = contexts.attach(ROOT if span is None else trace.set_span_in_context(span, ROOT))
        try:
            yield
        finally:
            contexts.detach(token)

    def close(self) -> None:
        """End all open spans."""
        with self._lock:
            while self._open:
                self._give_up(self._open.popleft())

    def _phase(
        self, tick: Tick | None, name: str, began: int, ended: int, counts: Attributes, error: Exception | None = None
    ) -> None:
        if tick is None:
            return
        tick.ended_at = max(tick.ended_at, ended)
        if not tick.is_recorded:
            return
        kind = KINDS.get(name, SpanKind.INTERNAL)
        span = self._tracer.start_span(f"pgbeat {name}", tick.context, kind, _named(counts), start_time=began)
        if error is not None:
            _blame(span, error)
        span.end(ended)

    def _give_up(self, tick: Tick) -> None:
        if tick.unsettled:
            self._unsettled = {job: known for job, known in self._unsettled.items() if known.tick is not tick}
        tick.end()


def _named(counts: Attributes) -> Attributes:
    """Give counts our prefix, except names that have a prefix."""
    return {name if "." in name else f"celery_pgbeat.{name}": value for name, value in counts.items()}


def _blame(span: Span, error: BaseException) -> None:
    """Note the type of an error, never its text: that may quote arguments."""
    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(StatusCode.ERROR)
