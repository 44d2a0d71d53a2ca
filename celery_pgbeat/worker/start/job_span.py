"""The span of a run: the worker adds the job to it, or the reason why its message is dropped.

The span is made by opentelemetry-instrumentation-celery, not by us.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from celery_pgbeat.measures.extras import missing_extra
from celery_pgbeat.settings import Settings

LONGEST = 250  # characters of a text from the header
FIELDS = ("periodic_task", "scheduled_for", "origin", "job", "run")  # of our header


class JobSpan:
    """The span that is current when the guard runs, if there is one."""

    def __init__(self, current_span: Callable[[], Any]) -> None:
        self._current_span = current_span

    def describe(self, header: Any) -> None:
        """Add the job that runs here."""
        span = self._current_span()
        if span.is_recording() and isinstance(header, Mapping):
            fields = {name: header[name] for name in FIELDS if isinstance(header.get(name), (str, int))}
            span.set_attributes(
                {
                    f"celery_pgbeat.{name}": value[:LONGEST] if isinstance(value, str) else value
                    for name, value in fields.items()
                }
            )

    def drop(self, reason: str) -> None:
        """Add why nothing runs here: `duplicate`, `too_early`, `unknown`, `refused`, `not_allowed`, ..."""
        self._current_span().set_attribute("celery_pgbeat.dropped", reason)


def job_span_of(settings: Settings) -> JobSpan | None:
    """Return what describes jobs in a worker; None, without any import, if `pgbeat_opentelemetry` is off.

    Raises:
        MissingExtra: the extra is not installed.
    """
    if not settings.opentelemetry:
        return None
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise missing_extra(error) from error
    return JobSpan(trace.get_current_span)
