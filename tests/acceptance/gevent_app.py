"""An app that gevent has patched before anything else is imported."""

# ruff: noqa: E402
from __future__ import annotations

from gevent import monkey  # type: ignore[import-untyped, unused-ignore]

monkey.patch_all()

from tests.harness.probe_app import app

__all__ = ("app",)
