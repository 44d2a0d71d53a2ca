"""What `PgBeat` is made of, and what it says of itself; nothing here connects."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from celery import Celery

from celery_pgbeat import PgBeat, every
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule, InvalidSetting

URL = "postgresql://shop:hush@localhost/shop"
make: Any = PgBeat


@pytest.fixture
def app() -> Celery:
    return Celery("shop", broker="memory://", set_as_current=False)


def test_a_text_in_the_place_of_the_app_is_the_url() -> None:
    assert URL == PgBeat(URL).settings.url
    assert ("other", URL) == (PgBeat(URL, schema="other").settings.schema, PgBeat(url=URL).settings.url)


@pytest.mark.parametrize("given", [("sqlite:///shop.db",), (None, "sqlite:///shop.db"), ("shop",)])
def test_a_url_of_another_database_is_refused_at_once(given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidSetting, match="postgresql://"):
        PgBeat(*given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((URL, URL), "PgBeat was given two URLs, as its first argument and as url"),
        ((5,), "app is an int, neither a Celery app nor the URL of a database"),
        ((ModuleType("shop"),), "app is a module, neither a Celery app nor"),
    ],
)
def test_a_value_that_is_neither_an_app_nor_a_url_is_refused_by_its_type(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make(*given)


def test_its_repr_says_where_it_works_without_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGBEAT_URL", raising=False)
    assert "PgBeat(url=None, schema='pgbeat')" == repr(PgBeat())

    monkeypatch.setenv("PGBEAT_URL", URL)
    assert "PgBeat(url='postgresql+psycopg2://shop:***@localhost/shop', schema='pgbeat')" == repr(PgBeat())
    assert "***@localhost/shop', schema='beat')" in repr(PgBeat(URL, schema="beat"))

    monkeypatch.setenv("PGBEAT_LEASE", "soon")
    assert "***@localhost/shop', schema=None)" in repr(PgBeat(URL)), "a wrong setting is no error of a repr"


def test_its_repr_loads_no_configuration(app: Celery) -> None:
    beat = PgBeat(app)

    assert "PgBeat('shop', url=None, schema=None)" == repr(beat)
    assert not app.configured
    app.config_from_object({"pgbeat_url": URL})
    assert app.conf.timezone is None or app.configured
    assert "PgBeat('shop', url='postgresql+psycopg2://shop:***@localhost/shop', schema='pgbeat')" == repr(beat)


def test_a_decorator_without_parentheses_says_what_to_write(app: Celery) -> None:
    decorate: Any = PgBeat(app, URL).periodic_task

    def poll() -> None: ...

    for task in (poll, app.task(poll), app.task(poll).s()):
        with pytest.raises(InvalidPeriodicTask, match=r"in place of a schedule: write @beat.periodic_task\(every"):
            decorate(task)


def test_a_schedule_that_can_be_called_is_still_a_schedule(app: Celery) -> None:
    class Plan:
        def to_pgbeat(self) -> str:
            return "@hourly"

        def __call__(self) -> None: ...

    PgBeat(app, URL).periodic_task(Plan())
    with pytest.raises(InvalidSchedule, match="a type is not a schedule: use cron"):
        PgBeat(app, URL).periodic_task(Plan)
    with pytest.raises(InvalidPeriodicTask, match="PgBeat was made without an app"):
        PgBeat(URL).periodic_task(every(minutes=5))
