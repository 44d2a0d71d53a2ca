"""The tests' app with a task that accepts any arguments and records nothing."""

from __future__ import annotations

from typing import Any

from tests.harness.probe_app import app


@app.task(name="app.quiet")
def run_quiet(*_: Any, **__: Any) -> None:
    """Do nothing."""
