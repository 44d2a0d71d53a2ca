"""Commands of Django that go over all tables of a project: dumpdata, loaddata, flush and what its tests do with it."""

from __future__ import annotations

import json
import unittest
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from celery_pgbeat import PgBeat
from celery_pgbeat.django.emptied import KEPT
from tests.django.visitor import person
from tests.harness.session import Session
from tests.harness.situations import Situation


def run(*words: str, **options: Any) -> str:
    from django.core.management import call_command

    out = StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


def named(session: Session) -> list[str]:
    return [row["name"] for row in session.rows("select name from pgbeat.periodic_task order by 1")]


@pytest.mark.parametrize("words", [(), ("--natural-foreign", "--natural-primary"), ("--all",), ("--exclude", "auth")])
def test_the_dump_of_a_project_can_be_loaded_and_has_nothing_of_the_schedule(
    well: Situation, tmp_path: Path, words: tuple[str, ...]
) -> None:
    from django.contrib.auth.models import User

    person("ada")
    well.plan()
    well.final("succeeded")
    file = tmp_path / "dump.json"

    file.write_text(run("dumpdata", *words))
    User.objects.filter(username="ada").update(first_name="Ada")
    run("loaddata", str(file), verbosity=0)

    models = {row["model"] for row in json.loads(file.read_text())}
    assert {"auth.user"} - {"auth.user" if "auth" in words else ""} <= models
    assert not [model for model in models if model.startswith("pgbeat.")]
    assert "" == User.objects.get(username="ada").first_name or "auth" in words
    assert ["nightly"] == named(well.session)


@pytest.mark.parametrize("label", ["pgbeat", "pgbeat.periodictask", "pgbeat.PeriodicTaskStatus"])
def test_a_dump_of_the_schedule_is_refused_and_the_error_names_the_way(situation: Situation, label: str) -> None:
    from django.core.management import CommandError

    with pytest.raises(CommandError, match="celery-pgbeat export"):
        run("dumpdata", "auth", label)


def test_a_fixture_with_rows_of_the_schedule_is_refused_and_can_be_loaded_without_them(
    situation: Situation, tmp_path: Path
) -> None:
    from django.contrib.auth.models import Group
    from django.core.management import CommandError

    file = tmp_path / "old.json"
    rows = [
        {"model": "auth.group", "pk": 7, "fields": {"name": "staff", "permissions": []}},
        {"model": "pgbeat.periodictaskstatus", "pk": "nightly", "fields": {"state": "waiting", "failures": 0}},
        {"model": "pgbeat.periodictask", "pk": "nightly", "fields": {"task": "shop.report"}},
    ]
    file.write_text(json.dumps(rows))

    with pytest.raises(CommandError, match="--exclude pgbeat"):
        run("loaddata", str(file))
    run("loaddata", str(file), "--exclude", "pgbeat", verbosity=0)

    assert ["staff"] == list(Group.objects.filter(pk=7).values_list("name", flat=True))
    Group.objects.all().delete()


def test_what_a_test_commits_is_gone_in_the_next_one(well: Situation) -> None:
    from django.db import connection
    from django.test import TransactionTestCase

    found: list[list[str]] = []

    class Committing(TransactionTestCase):
        def test_first(self) -> None:
            self.commit()

        def test_second(self) -> None:
            self.commit()

        def commit(self) -> None:
            found.append(named(well.session))
            beat = PgBeat()
            beat.schedule("reminder", "shop.remind", "every 5m", connection=connection)
            beat.trigger("reminder", connection=connection)
            beat.define_group("reports", max_active=2, connection=connection)
            assert ["reminder"] == named(well.session)

    result = unittest.TestResult()
    for name in ("test_first", "test_second"):
        Committing(name)(result)

    assert result.wasSuccessful(), result.errors or result.failures
    assert [[], []] == found
    assert [] == well.session.rows("select from pgbeat.change union all select from pgbeat.task_group")


def test_flush_leaves_the_schedule_of_a_database_that_is_not_for_tests(
    situation: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.apps import apps

    from celery_pgbeat.django.place import alias_url

    situation.plan()
    monkeypatch.setattr(apps.get_app_config("pgbeat"), "url", alias_url())

    run("flush", interactive=False, verbosity=0)

    assert ["nightly"] == named(situation.session)


def test_a_schema_that_was_emptied_is_as_a_new_one(well: Situation, project_database: str) -> None:
    from celery_pgbeat.django.emptied import empty

    well.plan()
    well.final("failed")
    empty("default")
    PgBeat(project_database, schema="fresh").migrate()

    assert set(KEPT) == filled(well.session, "fresh") == filled(well.session, "pgbeat")
    well.session.rows("drop schema fresh cascade")


def filled(session: Session, schema: str) -> set[str]:
    tables = [
        row["relname"]
        for row in session.rows(
            "select relname from pg_class where relnamespace = %s::regnamespace and relkind in ('r', 'p')", schema
        )
    ]
    return {table for table in tables if session.value(f"select exists (select from {schema}.{table})")}


def test_no_command_of_django_makes_or_reads_our_tables(situation: Situation) -> None:
    assert "pgbeat" not in run("sqlflush")
    assert "periodic_task" not in run("inspectdb")
