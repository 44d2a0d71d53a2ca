"""A task that gets a secret and shows it only in the errors that it raises."""

from __future__ import annotations

from celery import Task

from tests.harness.probe_app import app


@app.task(name="app.confide", bind=True, max_retries=1)
def confide(self: Task, secret: str, then: str = "succeed") -> None:
    """Succeed, want a retry once, or fail."""
    if then == "retry" and self.request.retries == 0:
        raise self.retry(countdown=0, exc=ValueError("not yet"))
    if then == "fail":
        raise ValueError("never")
