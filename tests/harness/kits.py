"""Kits of `celery_pgbeat.testing` whose schema is there already: migrating takes eight times as long as copying."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from celery_pgbeat.testing import PgBeatTest
from celery_pgbeat.testing.temporary_schema import TemporarySchema

MakeKit = Callable[..., PgBeatTest]


def kits_on(migrated: str, monkeypatch: pytest.MonkeyPatch) -> MakeKit:
    """Return what makes a kit in a migrated database; there is room for one."""
    monkeypatch.setattr(TemporarySchema, "make", lambda _: None)
    monkeypatch.setattr(TemporarySchema, "drop", lambda _: None)
    return lambda app, now, **rest: PgBeatTest(app, migrated, now, schema="pgbeat", **rest)
