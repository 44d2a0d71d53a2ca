"""The one error of the private servers."""

from __future__ import annotations

from celery_pgbeat.errors import PgBeatError


class ServerUnavailable(PgBeatError, RuntimeError):
    """A private server cannot be started here: there is no binary, no right to run it, or it fails at the start."""
