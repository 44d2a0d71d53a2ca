"""A worker that runs while a newer package makes the schema incompatible with its own."""

from __future__ import annotations

from contextlib import closing

import pytest

from celery_pgbeat.errors import SchemaTooNew
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker import context
from celery_pgbeat.worker.context import ProcessConnection


def test_a_running_worker_sees_within_a_heartbeat_that_its_package_is_too_old(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1.0]
    monkeypatch.setattr(context.time, "monotonic", lambda: now[0])
    settings = Settings.from_mapping({"pgbeat_url": migrated_database})
    with closing(ProcessConnection(settings)) as connection:
        assert connection.queries is connection.checked_queries()
        connection.database.execute("update pgbeat.schema_version set version = 999, min_compatible = 999")
        now[0] += settings.heartbeat_every.total_seconds()

        for _ in range(2):
            with pytest.raises(SchemaTooNew, match="upgrade celery-pgbeat on this node"):
                connection.checked_queries()
