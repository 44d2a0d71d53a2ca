"""The Celery app of the workers that are measured: a task that does nothing."""

from __future__ import annotations

from tests.harness.probe_app import app


@app.task(name="benchmark.noop")
def noop(label: str) -> None:
    """Do nothing."""
