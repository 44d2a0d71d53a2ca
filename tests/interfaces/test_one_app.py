"""One schema serves one app: beats of another one yield while beats of the first live."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from celery import Celery
from click.testing import CliRunner

from celery_pgbeat.beat.upkeep.one_app import OneApp
from celery_pgbeat.cli import main
from celery_pgbeat.errors import SchemaTaken
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.worker_queries import WorkerQueries
from celery_pgbeat.settings import Settings
from celery_pgbeat.worker.report.same_app import SameApp
from tests.harness.clock import Clock

DEAD_AFTER = timedelta(seconds=30)
SECOND = timedelta(seconds=1)
Check = Callable[[str | None], None]


@pytest.fixture
def database(migrated_database: str) -> Iterator[Database]:
    made = Database(migrated_database)
    yield made
    made.close()


@pytest.fixture
def clock(database: Database, migrated_database: str) -> Clock:
    made = Clock(migrated_database)
    made.advance(timedelta(0))
    return made


@pytest.fixture
def check(database: Database, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Make the check that a beat of the app of this name makes with its heartbeat."""
    monkeypatch.setattr("celery_pgbeat.beat.upkeep.one_app.boottime", iter(range(0, 10**9, 100)).__next__)
    beats: dict[str | None, OneApp] = {}
    settings = Settings(dead_after=DEAD_AFTER)

    def make(name: str | None) -> None:
        app = Celery(name, broker="memory://", set_as_current=False)
        beats.setdefault(name, OneApp(app, database, settings)).check()

    return make


def test_the_second_app_yields_and_both_name_the_other(
    check: Check, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    check("shop")
    with pytest.raises(SchemaTaken) as taken:
        check("blog")
    assert str(taken.value).startswith("The schema 'pgbeat' serves the app 'shop', and this beat is of the app 'blog'")
    assert "pgbeat_schema = 'blog'" in str(taken.value)

    for _ in range(2):
        check("shop")
    (line,) = caplog.messages
    assert line.startswith("Beats of another app, 'blog', use the schema 'pgbeat', which serves this app, 'shop'.")


def test_a_renamed_app_takes_over_once_the_beats_of_the_old_name_are_gone(
    check: Check, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    check("shop")
    for _ in range(3):
        with pytest.raises(SchemaTaken):
            check("store")
        clock.advance(DEAD_AFTER / 3)
    clock.advance(SECOND)

    check("store")

    (line,) = caplog.messages
    assert line.startswith("The beats of the app 'shop', which the schema 'pgbeat' served, are gone: beats of the app")


def test_an_app_that_comes_back_has_its_schema_again(check: Check, clock: Clock) -> None:
    check("shop")
    with pytest.raises(SchemaTaken):
        check("blog")
    for _ in range(4):
        clock.advance(DEAD_AFTER / 3)
        try:
            check("blog")
        except SchemaTaken:
            continue
    check("blog")

    check("shop")

    with pytest.raises(SchemaTaken):
        check("blog")


def test_silence_counts_only_while_it_was_listened_to(check: Check, clock: Clock) -> None:
    check("shop")
    with pytest.raises(SchemaTaken):
        check("blog")

    clock.advance(timedelta(hours=1))  # the database was away, for both

    with pytest.raises(SchemaTaken):
        check("blog")
    check("shop")


def test_an_app_is_forgotten_after_a_day(check: Check, clock: Clock, database: Database) -> None:
    check("shop")
    clock.advance(timedelta(days=1, seconds=1))
    with pytest.raises(SchemaTaken):  # it has not listened yet
        check("store")

    check("store")

    assert ["store"] == [row.name for row in database.execute("select name from pgbeat.app")]


@pytest.mark.parametrize("name", [None, "__main__"])
def test_an_app_without_a_name_is_let_in_and_bothers_nobody(check: Check, name: str | None, database: Database) -> None:
    check("shop")
    check(name)
    check("shop")

    assert ["shop"] == [row.name for row in database.execute("select name from pgbeat.app")]


def test_the_order_does_not_run_backwards_when_the_clock_is_set_back(check: Check, clock: Clock) -> None:
    check("shop")
    clock.advance(-timedelta(hours=1))

    with pytest.raises(SchemaTaken):
        check("blog")
    check("shop")


def test_doctor_names_both_apps(check: Check, migrated_database: str) -> None:
    check("shop")
    with pytest.raises(SchemaTaken):
        check("blog")

    done = CliRunner().invoke(main, ["--url", migrated_database, "doctor", "--json"])

    (found,) = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "apps"]
    assert found["what"].startswith("This schema has two apps: beats of 'blog' run beside those of 'shop'")
    assert "pgbeat_schema" in found["mend"]


def test_a_worker_of_another_app_says_so_once(
    check: Check, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    check("shop")
    queries = WorkerQueries(database)
    for name in ("shop", None, "blog"):
        duty = SameApp(Celery(name, set_as_current=False), "pgbeat")
        for _ in range(2):
            duty.run(queries)

    (line,) = caplog.messages
    assert line.startswith("This worker is of the app 'blog', and the schema 'pgbeat' serves the app 'shop'.")
