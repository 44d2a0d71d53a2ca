"""The one error of the private servers."""

from __future__ import annotations

from celery_pgbeat.errors import PgBeatError


class ServerUnavailable(PgBeatError, RuntimeError):
    """A private server cannot be started here: no binary, no right to, or it does not come up."""
