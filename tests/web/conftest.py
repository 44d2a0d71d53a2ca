"""The dashboard of a database whose clock stands at noon."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy.engine import make_url

from celery_pgbeat.postgres.roles import roles_script
from celery_pgbeat.web import dashboard
from tests.harness.session import Session
from tests.harness.situations import FILLED, Situation
from tests.harness.visitor import Visitor


@pytest.fixture(scope="module")
def stage(shared_database: str) -> Situation:
    """One database for all tests of a module, whose clock stands at noon."""
    return Situation(shared_database)


@pytest.fixture
def empty_stage(stage: Situation) -> Situation:
    """That database without a row, but for a beat and a worker that live."""
    stage.session.rows(f"truncate {', '.join(f'pgbeat.{table}' for table in FILLED)}")
    stage.beat()
    stage.worker()
    return stage


@pytest.fixture
def session(situation: Situation) -> Session:
    return situation.session


@pytest.fixture
def visitor(migrated_database: str) -> Iterator[Visitor]:
    """Somebody on this host who looks at the dashboard."""
    with Visitor(dashboard(migrated_database)) as made:
        yield made


@pytest.fixture
def reader_url(situation: Situation, migrated_database: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The database's URL for a user who is a member of the role `pgbeat_reader` and of no other."""
    name, owner = unique_name(), situation.session
    owner.rows(roles_script("pgbeat"))
    owner.rows("grant select on public.pgbeat_test_clock to public")
    owner.rows(f"create role {name} login password 'reader' in role pgbeat_reader")
    yield make_url(migrated_database).set(username=name, password="reader").render_as_string(hide_password=False)
    owner.rows(f"drop owned by {name}")
    owner.rows(f"drop role {name}")
