"""The app of the tests' processes under another name: a second app, or the same one renamed."""

from __future__ import annotations

from tests.harness.probe_app import app

app.main = "second"
