"""What a worker adds to a run's span, which is somebody else's: whose job it is, or that its message is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace

LONGEST = 250  # characters of what a header says
TOLD = ("periodic_task", "scheduled_for", "origin", "job", "run")  # of our header


class JobSpan:
    """The span that is current where the guard stands: that of opentelemetry-instrumentation-celery, or none."""

    def describe(self, header: Any) -> None:
        """Tell whose job runs here."""
        span = trace.get_current_span()
        if span.is_recording() and isinstance(header, Mapping):
            told = {name: header[name] for name in TOLD if isinstance(header.get(name), (str, int))}
            span.set_attributes(
                {f"celery_pgbeat.{name}": one[:LONGEST] if isinstance(one, str) else one for name, one in told.items()}
            )

    def drop(self, reason: str) -> None:
        """Tell that nothing runs here, and why: `duplicate`, `too_early`, `unknown`, `refused` or `not_allowed`."""
        trace.get_current_span().set_attribute("celery_pgbeat.dropped", reason)
