"""A Django project in this process, with a database of its own, in which requests commit what they write.

It is configured without DJANGO_SETTINGS_MODULE, which Celery would find in the processes of other tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import django
import pytest
from celery import _state
from django.conf import settings
from sqlalchemy.engine import make_url

from celery_pgbeat.embedded.databases import create_database, drop_database
from tests.django.project import settings as given
from tests.django.visitor import Visitor, person
from tests.harness.session import Session
from tests.harness.situations import FILLED, Situation

if not settings.configured:
    settings.configure(**{name: value for name, value in vars(given).items() if name.isupper()})
    django.setup()


@pytest.fixture(scope="session")
def project_database(postgres_server: str, unique_name: Callable[[], str]) -> Iterator[str]:
    """The URL of the project's database, after `migrate`."""
    from django.core.management import call_command
    from django.db import connections

    name = unique_name()
    url = make_url(create_database(postgres_server, name))
    connections["default"].settings_dict.update(
        NAME=name,
        USER=url.username or "",
        PASSWORD=url.password or "",
        HOST=url.host or url.query.get("host", ""),
        PORT=str(url.port or url.query.get("port", "")),
    )
    call_command("migrate", verbosity=0)
    yield url.render_as_string(hide_password=False)
    from celery_pgbeat.django import views

    views._dashboard.cache_clear()
    connections.close_all()
    drop_database(postgres_server, name)


@pytest.fixture
def app() -> Iterator[Any]:
    """The Celery app of the project, as the one of this process."""
    from tests.django.project.celery import app

    before = _state._tls.current_app
    app.set_current()
    yield app
    _state._tls.current_app = before


@pytest.fixture
def situation(project_database: str, app: Any) -> Iterator[Situation]:
    """That database without a row, its clock at noon."""
    stage = Situation(project_database)
    stage.session.rows(f"truncate {', '.join(f'pgbeat.{table}' for table in FILLED)}")
    stage.session.rows("truncate auth_user, django_admin_log, django_session cascade")
    yield stage
    stage.session.connection.close()


@pytest.fixture
def session(situation: Situation) -> Session:
    return situation.session


@pytest.fixture
def well(situation: Situation) -> Situation:
    """A beat and a worker live."""
    situation.beat()
    situation.worker()
    return situation


@pytest.fixture
def anna(situation: Situation) -> Visitor:
    """A person who may do everything."""
    return person("anna", superuser=True)


@pytest.fixture
def ben(situation: Situation) -> Visitor:
    """A person who may look, and change nothing."""
    return person("ben", "view_periodictask", "view_job", "view_taskgroup", "view_change")


@pytest.fixture
def carl(situation: Situation) -> Visitor:
    """A person who may log in, and nothing else."""
    return person("carl")
