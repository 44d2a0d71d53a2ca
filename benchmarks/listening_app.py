"""The Celery app of beats whose publish signals have a handler, so that messages cannot be rendered.

The setting `benchmark_listens` names the signal.
"""

from __future__ import annotations

from typing import Any

from celery import signals

from tests.harness.probe_app import app


def handle(**_: Any) -> None:
    """Take no notice."""


if app.conf.get("benchmark_listens"):
    getattr(signals, app.conf.benchmark_listens).connect(handle)
