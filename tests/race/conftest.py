"""What the races share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.ticks import beat


@pytest.fixture
def store(migrated_database: str) -> Iterator[BeatQueries]:
    made = beat(migrated_database)
    yield made
    made.database.close()
