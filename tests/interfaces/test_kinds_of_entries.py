"""Entries of the kinds that well-known projects use: each becomes a row, or is refused alone with the way out.

They are made from descriptions of those projects' schedules. None is a copy: names, tasks and times are ours.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from datetime import timedelta
from enum import IntEnum
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from celery import Celery, Task
from celery.schedules import crontab, schedule
from kombu import Exchange, Queue
from kombu.serialization import register, unregister

from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.settings import Settings
from celery_pgbeat.testing import PgBeatTest


@pytest.fixture
def database(migrated_database: str) -> Iterator[Database]:
    made = Database(migrated_database)
    yield made
    made.close()


def app_of(schedule: dict[str, Any] | None = None, **conf: Any) -> Celery:
    app = Celery("site", broker="memory://", set_as_current=False)
    app.conf.update(result_expires=None, beat_schedule=schedule or {}, **conf)
    return app


def rows_of(app: Celery, database: Database) -> dict[str, Any]:
    """Start a beat with this app, and return the rows that it makes."""
    CodeSchedules(app, database, Settings()).sync()
    return {row.name: row for row in database.execute("select * from pgbeat.periodic_task")}


class Priority(IntEnum):
    """Priorities as an application names them."""

    LOW = 3


class UnlessAsked(schedule):
    """A schedule class that asks a database whether it is due."""

    def is_due(self, last_run_at: Any) -> Any:
        return super().is_due(last_run_at)


ENTRIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a list of minutes": (
        {"task": "t", "schedule": crontab(minute=[0, 15, 30, 45])},
        {"schedule": "crontab: 0,15,30,45 * * * *"},
    ),
    "days by name": (
        {"task": "t", "schedule": crontab(day_of_week="Sun,Tue,Thu", hour="2", minute="0")},
        {"schedule": "crontab: 0 2 * * sun,tue,thu"},
    ),
    "a day by its whole name": (
        {"task": "t", "schedule": crontab(minute=0, hour=12, day_of_week="monday")},
        {"schedule": "crontab: 0 12 * * mon"},
    ),
    "positional fields": (
        {"task": "t", "schedule": crontab("5", "*/1")},
        {"schedule": "crontab: 5 */1 * * *"},
    ),
    "an enum for a priority": (
        {"task": "t", "schedule": timedelta(seconds=20), "options": {"priority": Priority.LOW, "queue": "slow"}},
        {"priority": 3, "queue": "slow", "schedule": "every 20s"},
    ),
    "expires in parts of a second": (
        {"task": "t", "schedule": 600.0, "options": {"expires": 599.5}},
        {"options": {"expires": 599.5}},
    ),
    "expires as a duration, and headers": (
        {"task": "t", "schedule": 60, "options": {"expires": timedelta(hours=2), "headers": {"source": "beat"}}},
        {"options": {"expires": 7200, "headers": {"source": "beat"}}},
    ),
    "an exchange and a routing key": (
        {"task": "t", "schedule": 60, "options": {"exchange": "tasks", "routing_key": "slow.t"}},
        {"options": {"exchange": "tasks", "routing_key": "slow.t"}},
    ),
    "None among the arguments": (
        {"task": "t", "schedule": crontab(), "args": (None, 1), "kwargs": {"alert": None}},
        {"args": [None, 1], "kwargs": {"alert": None}},
    ),
    "thirty days": (
        {"task": "t", "schedule": timedelta(days=30)},
        {"schedule": "every 30d", "anchor": None},
    ),
    "relative beside a crontab": (
        {"task": "t", "schedule": crontab(minute=0, hour=3), "relative": True},
        {"schedule": "crontab: 0 3 * * *", "anchor": None},
    ),
    "relative beside a duration": (
        {"task": "t", "schedule": timedelta(minutes=5), "relative": True},
        {"schedule": "every 5m"},
    ),
    "  two  spaces, \"quotes\" and 'apostrophes'": (
        {"task": "t", "schedule": 60},
        {"schedule": "every 1m"},
    ),
}


def test_every_kind_of_entry_becomes_the_row_that_it_means(database: Database) -> None:
    found = rows_of(app_of({name: given for name, (given, _) in ENTRIES.items()}), database)

    for name, (_, expected) in ENTRIES.items():
        assert expected == {column: getattr(found[name], column) for column in expected}, name
    assert ENTRIES.keys() == found.keys()


def test_entries_added_when_the_app_is_configured_become_rows(database: Database) -> None:
    """Unnamed ones, arguments beside a signature, and options handed on as keywords."""
    app = app_of()

    @app.task(name="site.count", shared=False)
    def count(*_: Any, **__: Any) -> None: ...

    @app.on_after_configure.connect
    def add(sender: Celery, **_: Any) -> None:
        sender.add_periodic_task(120, count.s(), name="named, with a queue", queue="q", expires=119.5, priority=2)
        sender.add_periodic_task(crontab(minute=30), count.s(7))
        sender.add_periodic_task(crontab(hour=5, minute=0), count.s(kind="all"), args=(1,), name="args beside")

    found = rows_of(app, database)

    assert {"named, with a queue", "site.count(7)", "args beside"} == set(found)
    named = found["named, with a queue"]
    assert ("q", 2, {"expires": 119.5}) == (named.queue, named.priority, named.options)
    assert [7] == found["site.count(7)"].args


def test_what_cannot_be_a_row_is_refused_alone_with_the_way_out(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of(
        {
            "good": {"task": "t", "schedule": 60},
            "own class": {"task": "t", "schedule": UnlessAsked(timedelta(seconds=20))},
            "own option": {"task": "t", "schedule": 60, "options": {"work_gated": True}},
            "pickled": {"task": "t", "schedule": 60, "options": {"serializer": "pickle"}},
        }
    )
    task = app.task(name="site.count", shared=False)(lone)

    @app.on_after_finalize.connect
    def add(sender: Celery, **_: Any) -> None:
        sender.add_periodic_task(60, task.s(organization_ids=[UUID(int=number) for number in range(8)]))

    assert {"good"} == set(rows_of(app, database))
    told = "\n".join(record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert "as often as it reads, and let the task look" in told
    assert "options has 'work_gated', which a periodic task cannot set" in told
    assert "'json', the only one allowed" in told
    assert "set one yourself: add_periodic_task(…, name='…')" in told
    assert 4 == told.count("is refused, the others go on")


def lone(**_: Any) -> None: ...


SETTINGS = [
    (
        "upper case",
        None,
        {"CELERYBEAT_SCHEDULE": {"a": {"task": "t", "schedule": 60}}, "CELERY_TIMEZONE": "Asia/Tokyo"},
    ),
    (
        "django",
        "CELERY",
        {"CELERY_BEAT_SCHEDULE": {"a": {"task": "t", "schedule": 60}}, "CELERY_TIMEZONE": "Asia/Tokyo"},
    ),
    ("lower case", None, {"beat_schedule": {"a": {"task": "t", "schedule": 60}}, "timezone": "Asia/Tokyo"}),
]


@pytest.mark.parametrize(("namespace", "given"), [case[1:] for case in SETTINGS], ids=[case[0] for case in SETTINGS])
def test_settings_may_be_written_in_any_way_that_celery_reads(
    database: Database, namespace: str | None, given: dict[str, Any]
) -> None:
    app = Celery("site", broker="memory://", set_as_current=False)
    app.config_from_object(SimpleNamespace(**given), namespace=namespace)

    assert "Asia/Tokyo" == rows_of(app, database)["a"].timezone


@pytest.fixture
def signed() -> Iterator[None]:
    """A serializer that an application has registered: a pickle with a signature before it."""
    register(
        "signed", lambda data: b"ok" + pickle.dumps(data), lambda data: pickle.loads(data[2:]), "application/signed"
    )
    yield
    unregister("signed")


class Deduplicating(Task):
    """A task class with an `apply_async` of its own."""

    def apply_async(self, *args: Any, **options: Any) -> Any:
        return super().apply_async(*args, **options)


@pytest.mark.usefixtures("signed")
@pytest.mark.parametrize(
    "conf",
    [
        {"task_serializer": "pickle", "accept_content": ["pickle", "json"]},
        {"task_serializer": "signed", "accept_content": ["application/signed"]},
        {"task_queue_max_priority": 10, "task_default_priority": 5},
    ],
    ids=["pickle", "one-of-its-own", "priorities"],
)
def test_they_are_sent_to_declared_queues_whatever_the_serializer(postgres_server: str, conf: dict[str, Any]) -> None:
    entries = {name: given for name, (given, _) in ENTRIES.items() if "options" not in given}
    app = app_of(
        entries,
        task_queues=[Queue("site", Exchange("tasks"), routing_key="site")],
        task_default_queue="site",
        task_create_missing_queues=False,
        **conf,
    )
    app.task(name="t", base=Deduplicating, shared=False)(anything)

    with PgBeatTest(app, postgres_server, now="2026-12-07T12:00Z") as kit:
        for name in entries:
            kit.beat.trigger(name)
        sent = kit.tick()

    assert entries.keys() == {job.periodic_task for job in sent}
    assert not kit.refused


def anything(*_: Any, **__: Any) -> None: ...
