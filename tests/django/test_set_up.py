"""Migrations, settings and checks of a project."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg2
import pytest
from celery import Celery
from sqlalchemy.engine import make_url

import celery_pgbeat.django
from celery_pgbeat import PgBeat, api
from celery_pgbeat.django import database_url
from celery_pgbeat.errors import DatabaseBusy, InvalidSetting
from celery_pgbeat.postgres.engine import create_engine, normalise_url
from tests.harness.session import Session
from tests.harness.situations import Situation
from tests.harness.transactions import Transaction

POSTGRES = {"ENGINE": "django.db.backends.postgresql", "NAME": "shop"}


def ids(**given: Any) -> list[str]:
    """Return the ids of what the checks of this app find."""
    from celery_pgbeat.django import checks

    return [found.id for found in [*checks.check_project(), *checks.check_schema(**given)]]


def test_migrate_makes_the_schema_and_permissions(session: Session) -> None:
    from django.contrib.auth.models import Permission

    assert 0 == session.value("select count(*) from pgbeat.periodic_task")
    known = set(Permission.objects.filter(content_type__app_label="pgbeat").values_list("codename", flat=True))
    assert known == {
        *("add_periodictask", "change_periodictask", "delete_periodictask", "view_periodictask"),
        *("change_job", "view_job", "change_taskgroup", "view_taskgroup", "view_change"),
    }


def test_migrate_brings_an_older_schema_up_to_date(session: Session) -> None:
    from django.core.management import call_command

    known = session.value("select definitions from pgbeat.schema_version")
    session.rows("update pgbeat.schema_version set definitions = 'older'")

    call_command("migrate", verbosity=0)

    assert known == session.value("select definitions from pgbeat.schema_version")


def test_migrate_leaves_the_schema_if_that_is_turned_off(session: Session, app: Any) -> None:
    from django.core.management import call_command

    known = session.value("select definitions from pgbeat.schema_version")
    session.rows("update pgbeat.schema_version set definitions = 'older'")
    app.conf.pgbeat_auto_migrate = False
    try:
        call_command("migrate", verbosity=0)
    finally:
        del app.conf["pgbeat_auto_migrate"]

    assert "older" == session.value("select definitions from pgbeat.schema_version")
    session.rows("update pgbeat.schema_version set definitions = %s", known)


def test_migrate_says_which_grant_a_role_lacks(situation: Situation, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.management import CommandError

    from celery_pgbeat.django import bring_schema

    situation.session.rows("create role pgbeat_django_nobody login password 'x'")
    try:
        url = make_url(bring_schema.alias_url()).set(username="pgbeat_django_nobody", password="x")
        monkeypatch.setattr(bring_schema, "alias_url", lambda: url.render_as_string(hide_password=False))
        monkeypatch.setattr(bring_schema, "schema", lambda: "another")

        with pytest.raises(CommandError, match=r"grant create on database .* to pgbeat_django_nobody"):
            bring_schema.bring_schema()
    finally:
        situation.session.rows("drop role pgbeat_django_nobody")


def test_makemigrations_never_finds_a_difference(situation: Situation) -> None:
    from django.core.management import call_command

    call_command("makemigrations", check=True, dry_run=True, verbosity=0)  # it exits if there is one


def test_a_project_that_is_set_up_passes_all_checks_in_its_tests_too(situation: Situation, app: Any) -> None:
    from django.apps import apps
    from django.core.management import call_command

    app.conf.pgbeat_url = apps.get_app_config("pgbeat").url  # that of the settings, and not that of the tests
    try:
        assert [] == ids(databases=["default"])
        call_command("check", databases=["default"], fail_level="WARNING")  # Django's own find nothing in this app
    finally:
        del app.conf["pgbeat_url"]


@pytest.mark.parametrize(
    ("conf", "found"),
    [
        ({}, "pgbeat.W004"),
        ({"pgbeat_url": "postgresql://localhost/another"}, "pgbeat.W005"),
        ({"beat_scheduler": "celery.beat:PersistentScheduler"}, "pgbeat.W003"),
        ({"pgbeat_lease": "soon"}, "pgbeat.E003"),
        ({"pgbeat_schema": "another"}, "pgbeat.E004"),
    ],
)
def test_what_the_celery_app_lacks_has_a_name(situation: Situation, app: Any, conf: dict[str, Any], found: str) -> None:
    before = {name: app.conf.get(name) for name in conf}
    app.conf.update(conf)
    try:
        assert found in ids()
    finally:
        app.conf.update(before)


def test_the_scheduler_of_a_project_that_moves_is_said_to_be_another_one(situation: Situation, app: Any) -> None:
    moving = Celery("moving")
    moving.conf.beat_scheduler = "django_celery_beat.schedulers:DatabaseScheduler"
    PgBeat(moving, url="postgresql://localhost/shop")
    moving.set_current()

    assert "pgbeat.W003" in ids()


def test_a_missing_celery_app_is_reported(situation: Situation) -> None:
    Celery("default").set_current()

    assert ["pgbeat.W002"] == ids()


def test_a_database_that_is_no_postgres_has_a_name_and_a_way_out(
    situation: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.conf import settings
    from django.db import connections

    monkeypatch.setattr(settings, "PGBEAT_DATABASE", "files", raising=False)
    assert ["pgbeat.E001"] == ids(databases=["files"])
    monkeypatch.setitem(
        connections.databases,
        "files",
        {**connections.databases["default"], "ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    )
    assert ["pgbeat.E002"] == ids(databases=["files"])


def test_use_tz_that_is_off_is_warned_of(situation: Situation, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.conf import settings

    monkeypatch.setattr(settings, "USE_TZ", False)

    assert "pgbeat.W001" in ids()


def test_a_schema_that_is_missing_or_older_is_said_by_the_check_of_the_database(
    situation: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from celery_pgbeat.django import checks

    monkeypatch.setattr(checks, "schema", lambda: "nowhere")

    (found,) = checks.check_schema(databases=["default"])

    assert ("pgbeat.W006", "Run manage.py migrate.") == (found.id, found.hint)
    assert [] == checks.check_schema(databases=None)


@pytest.mark.parametrize(
    ("database", "url"),
    [
        (POSTGRES, "postgresql:///shop"),
        ({**POSTGRES, "USER": "a@b", "PASSWORD": "p:/@%"}, "postgresql://a%40b:p%3A%2F%40%25@/shop"),
        ({**POSTGRES, "HOST": "db", "PORT": "5433"}, "postgresql://db:5433/shop"),
        ({**POSTGRES, "HOST": "/run/pg", "PORT": 5433}, "postgresql:///shop?host=%2Frun%2Fpg&port=5433"),
        ({**POSTGRES, "OPTIONS": {"sslmode": "require", "pool": True}}, "postgresql:///shop?sslmode=require"),
        ({**POSTGRES, "HOST": "a,b", "PORT": "5432,5433"}, "postgresql:///shop?host=a%2Cb&port=5432%2C5433"),
        ({**POSTGRES, "HOST": "a,b", "PORT": 5433}, "postgresql:///shop?host=a%2Cb&port=5433%2C5433"),
        ({**POSTGRES, "HOST": "a,b"}, "postgresql:///shop?host=a%2Cb"),
    ],
)
def test_the_url_of_a_database_is_that_of_djangos_settings(database: dict[str, Any], url: str) -> None:
    assert url == database_url(database)
    assert normalise_url(url).database == "shop"


@pytest.mark.parametrize(("host", "port"), [("db", "http"), ("a,b", "1,2,3"), ("db", "5432,5433"), ("a,b", "1,x")])
def test_an_invalid_port_is_refused_by_its_name(host: str, port: str) -> None:
    with pytest.raises(InvalidSetting, match=f"the HOST '{host}' and the PORT '{port}'"):
        database_url({**POSTGRES, "HOST": host, "PORT": port})


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_the_role_that_django_assumes_is_ours_too(
    database: str, unique_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    role = f"{unique_name()} Of\\one"
    url, quoted = make_url(database), f'"{role}"'
    with closing(psycopg2.connect(database)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute(f"create role {quoted}")
        settings = {
            **POSTGRES,
            "HOST": f"127.0.0.1,{url.host}",
            "PORT": f"1,{url.port}",
            "NAME": url.database,
            "USER": url.username,
            "PASSWORD": url.password,
            "OPTIONS": {"assume_role": role, "options": "-c work_mem=5MB"},
        }
        made = create_engine(database_url(settings).replace("postgresql:", f"postgresql+{driver}:"))

        with made.connect() as ours:
            assert [(role, "5MB")] == list(ours.exec_driver_sql("select current_user, current_setting('work_mem')"))
        made.dispose()
        cursor.execute(f"drop role {quoted}")


@pytest.mark.parametrize("engine", ["django.db.backends.sqlite3", "django.db.backends.mysql", ""])
def test_another_database_is_refused_by_its_engine(engine: str) -> None:
    with pytest.raises(InvalidSetting, match=f"the engine {engine!r}, and celery-pgbeat needs Postgres"):
        database_url({"ENGINE": engine, "NAME": "shop"})


def test_a_plain_save_is_refused_because_it_would_write_what_beats_have_written(situation: Situation) -> None:
    from celery_pgbeat.django.models import PeriodicTask

    situation.plan()
    task = PeriodicTask.objects.get(pk="nightly")
    task.subject = "stock"

    with pytest.raises(TypeError, match="update_fields"):
        task.save()
    with pytest.raises(TypeError, match=r"beat\.schedule"):
        PeriodicTask(name="x").save()
    task.save(update_fields=["subject"])

    assert "stock" == situation.session.task("nightly")["subject"]


def test_a_job_has_the_fields_of_the_view() -> None:
    from celery_pgbeat.django.models import Job

    assert [field.name for field in Job._meta.concrete_fields] == list(api.Job.__dataclass_fields__)


def test_each_model_reads_its_table(situation: Situation) -> None:
    from celery_pgbeat.django.models import MODELS

    situation.beat()
    situation.plan(group_name="g", blackout=["cron: 0 0 * * sat P2D"], jitter="30s")
    situation.final("succeeded")
    situation.session.rows("select pgbeat.limit_group('g', 2), pgbeat.pause('nightly', 'stock')")

    assert all(str(model.objects.all()[0]) for model in MODELS)


def test_what_a_transaction_of_django_has_written_is_seen_and_rolled_back_with_it(situation: Situation) -> None:
    from django.db import transaction

    from celery_pgbeat.django.joined import JoinedBeat

    beat = JoinedBeat().as_person("anna")
    with transaction.atomic():
        beat.schedule("fresh", "shop.report", "@daily")
        assert "fresh" == beat.get("fresh").name
        with beat.database.connection.cursor() as cursor:
            cursor.execute("select current_setting('pgbeat.who', true)")
            assert ("",) == cursor.fetchone()  # what else the transaction does is not hers
        transaction.set_rollback(True)

    assert 0 == situation.session.value("select count(*) from pgbeat.periodic_task")


def test_reads_have_a_time_limit_and_leave_the_settings_of_the_transaction_as_they_were(situation: Situation) -> None:
    from django.db import transaction

    from celery_pgbeat.django.joined import JoinedBeat

    database = JoinedBeat().database

    def settings() -> list[str]:
        with database.connection.cursor() as cursor:
            cursor.execute("select current_setting('statement_timeout'), current_setting('jit')")
            return list(cursor.fetchone())

    with transaction.atomic():
        before = settings()
        with database.reading():
            within = settings()
        assert (["5s", "off"], before) == (within, settings())


def test_a_read_that_takes_too_long_is_ended_and_the_page_goes_on(situation: Situation, project_database: str) -> None:
    from celery_pgbeat.django.joined import JoinedBeat

    beat = JoinedBeat()
    with closing(Transaction(project_database)) as other, beat.database.reading():
        other.execute("lock table pgbeat.periodic_task in access exclusive mode")
        with beat.database.connection.cursor() as cursor:
            cursor.execute("set local statement_timeout = 100")
        with pytest.raises(DatabaseBusy), beat.database.attempt():
            beat.list()
        other.rollback()
        assert [] == beat.list()


def test_the_examples_of_its_docstrings_run(situation: Situation) -> None:
    ran = 0
    for found in pkgutil.walk_packages(celery_pgbeat.django.__path__, "celery_pgbeat.django."):
        done = doctest.testmod(importlib.import_module(found.name))
        assert 0 == done.failed
        ran += done.attempted

    assert ran
