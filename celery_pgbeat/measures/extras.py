"""Loads what needs the extra `opentelemetry`, where `pgbeat_opentelemetry` asks for it; else none of it is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_pgbeat.errors import MissingExtra
from celery_pgbeat.settings import Settings

if TYPE_CHECKING:
    from celery_pgbeat.measures.spans import Spans


def spans_of(settings: Settings) -> Spans | None:
    """Return the spans of a beat, None where nobody wants them.

    Raises:
        MissingExtra: the extra is not installed.
    """
    if not settings.opentelemetry:
        return None
    try:
        from celery_pgbeat.measures.spans import Spans
    except ImportError as error:
        raise missing_extra(error) from error
    return Spans()


def missing_extra(error: ImportError) -> MissingExtra:
    """Return the error that names the extra to install."""
    return MissingExtra(f"pgbeat_opentelemetry is on, but {error}: pip install 'celery-pgbeat[opentelemetry]'")
