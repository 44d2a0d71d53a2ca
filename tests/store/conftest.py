"""What several tests of the views ask for."""

from __future__ import annotations

import pytest

from tests.harness.situations import Situation


@pytest.fixture
def situation(migrated_database: str) -> Situation:
    """A database whose clock stands at noon, with nobody there."""
    return Situation(migrated_database)


@pytest.fixture
def well(situation: Situation) -> Situation:
    """A beat and a worker with our tracker live."""
    situation.beat()
    situation.worker()
    return situation
