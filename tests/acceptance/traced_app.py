"""The probe app with tracing: an SDK in each process, and Celery's instrumentation if wanted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celery import signals
from opentelemetry import trace
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from tests.harness.probe_app import app

__all__ = ["app"]

SPANS = "TRACED_SPANS"  # the file that gets them, a line of JSON each
INSTRUMENTED = "TRACED_INSTRUMENTED"  # "beat": the sending too is instrumented


class Lines(SpanExporter):
    """Appends to a file."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        text = "".join(f"{span.to_json(indent=None)}\n" for span in spans)
        with Path(os.environ[SPANS]).open("a", encoding="utf-8") as file:
            file.write(text)
        return SpanExportResult.SUCCESS


def _provide() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Lines()))
    trace.set_tracer_provider(provider)


@signals.beat_init.connect
def _in_beat(**_: Any) -> None:
    _provide()
    if os.environ.get(INSTRUMENTED) == "beat":
        CeleryInstrumentor().instrument()


@signals.worker_process_init.connect
def _in_worker(**_: Any) -> None:
    _provide()
    CeleryInstrumentor().instrument()
