"""Imports what needs the extra `opentelemetry`, but only if `pgbeat_opentelemetry` asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_pgbeat.errors import MissingExtra
from celery_pgbeat.settings import Settings

if TYPE_CHECKING:
    from celery_pgbeat.measures.spans import Spans


def spans_of(settings: Settings) -> Spans | None:
    """Return the spans of a beat, None if they are not wanted.

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
