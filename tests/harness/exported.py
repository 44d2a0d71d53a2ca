"""Spans that were ended, kept for a test to look at: OpenTelemetry's SDK writing to memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler


class Exported:
    """What was exported."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._memory = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans, in the order of their ends."""
        return list(self._memory.get_finished_spans())

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [span.name for span in self.spans]

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans of a name."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """Return the only span of a name."""
        (found,) = self.named(name)
        return found


@contextmanager
def exported(sampler: Sampler = ALWAYS_ON) -> Iterator[Exported]:
    """Be the process's provider for a moment; the API itself allows one change only."""
    made, before = Exported(sampler), trace._TRACER_PROVIDER
    trace._TRACER_PROVIDER = made.provider
    try:
        yield made
    finally:
        trace._TRACER_PROVIDER = before


def counts(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span that have our prefix."""
    prefix = "celery_pgbeat."
    return {key.removeprefix(prefix): value for key, value in (span.attributes or {}).items() if key.startswith(prefix)}
