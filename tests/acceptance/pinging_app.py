"""The probe's app, whose beats ask each second whether workers answer that do not report."""

from __future__ import annotations

from celery_pgbeat.beat.upkeep import result_poller
from tests.harness.probe_app import app

__all__ = ["app"]

result_poller.PING_EVERY = 1.0
