"""A dashboard of a database with a living beat and a worker, opened by people who may change things or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from celery_pgbeat.api import PgBeat
from celery_pgbeat.web import dashboard
from tests.harness.situations import Situation
from tests.harness.visitor import Visitor


@pytest.fixture
def well(empty_stage: Situation) -> Situation:
    """A beat and a worker live, and there is nothing else."""
    return empty_stage


@pytest.fixture
def beat(shared_database: str) -> Iterator[PgBeat]:
    made = PgBeat(url=shared_database)
    yield made
    made.close()


@pytest.fixture
def visitor(shared_database: str) -> Iterator[Visitor]:
    """A person who may look and not change."""
    with Visitor(dashboard(shared_database)) as made:
        yield made


@pytest.fixture
def anna(shared_database: str) -> Iterator[Visitor]:
    """A person who may change things, by her name."""
    with Visitor(dashboard(shared_database, may_change=lambda _: "anna")) as made:
        yield made


@pytest.fixture
def nameless(shared_database: str) -> Iterator[Visitor]:
    """A person who may change things, and whose name is not known."""
    with Visitor(dashboard(shared_database, may_change=lambda _: True)) as made:
        yield made
