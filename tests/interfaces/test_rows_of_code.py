"""A row that code declares is not taken from the code by accident: not in SQL, not in Python, not in the shell."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab
from click.testing import CliRunner
from sqlalchemy.exc import DBAPIError

from celery_pgbeat import PgBeat
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.cli import main
from celery_pgbeat.cli.doctor import code
from celery_pgbeat.errors import InvalidPeriodicTask
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.database import Database, sqlstate
from celery_pgbeat.settings import Settings

HOURLY = {"task": "shop.sync", "schedule": crontab(minute=0)}


def shop(*names: str) -> Celery:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(result_expires=None, beat_schedule=dict.fromkeys(names, HOURLY))
    return app


def deploy(database: Database, *names: str) -> CodeSchedules:
    """Start a beat whose code declares these rows."""
    declared = CodeSchedules(shop(*names), database, Settings())
    declared.sync()
    return declared


def state(beat: PgBeat) -> list[Any]:
    return beat.database.execute("select name, schedule, managed_by, xmin::text from pgbeat.periodic_task order by 1")


def test_each_way_refuses_it_says_what_to_do_and_writes_nothing(beat: PgBeat) -> None:
    deploy(beat.database, "a", "b", "c")
    before = state(beat)
    many = [{"name": name, "task": "t", "schedule": "@daily"} for name in ("a", "new", "b")]

    with pytest.raises(InvalidPeriodicTask) as python:
        beat.schedule("a", "t", "@daily")
    with pytest.raises(InvalidPeriodicTask, match=r"^'a' is declared in code, by code:shop, and so are 1 more\. "):
        beat.schedule_many(many)
    with pytest.raises(InvalidPeriodicTask) as kept:
        beat.schedule("a", "t", "@daily", keep_next_run=True)
    with pytest.raises(Exception, match="'a' is declared in code, by code:shop"):
        beat.database.execute("select pgbeat.schedule('a', 't', '@daily')")
    shell = CliRunner().invoke(main, ["--url", beat.settings.required_url, "add", "a", "--task", "t"])

    assert str(python.value) == str(kept.value) == (
        "'a' is declared in code, by code:shop. Change it in the code, or single columns with update; with take_over "
        "the row becomes yours, and the code no longer changes it"
    )  # fmt: skip
    assert (1, "Error: 'a' is managed by 'code:shop': change it there, or add --take-over\n") == (
        shell.exit_code, shell.stderr,
    )  # fmt: skip
    assert before == state(beat)


def test_no_caller_declares_a_row_as_the_code_of_an_app(beat: PgBeat) -> None:
    deploy(beat.database, "a")
    before = state(beat)
    refused = (
        "managed_by is 'code:shop': only the beats of that app declare such rows, from its code. Declare the row in "
        "the code, or choose another managed_by; to give a row to the code, update its managed_by"
    )
    mine = {"name": "mine", "task": "t", "schedule": "@daily", "managed_by": "code:shop"}

    for name, take_over in (("new", False), ("a", False), ("a", True)):
        with pytest.raises(InvalidPeriodicTask) as python:
            beat.schedule(name, "t", "@daily", managed_by="code:shop", take_over=take_over)
        assert refused == str(python.value)
    with pytest.raises(InvalidPeriodicTask, match=r"^managed_by is 'code:shop'"):
        beat.schedule_many([{"name": "other", "task": "t", "schedule": "@daily"}, mine])
    with pytest.raises(DBAPIError, match="managed_by is 'code:site'") as sql:
        beat.database.execute("select pgbeat.schedule('new', 't', '@daily', managed_by => 'code:site')")
    shell = CliRunner().invoke(
        main, ["--url", beat.settings.required_url, "add", "new", "--task", "t", "--managed-by", "code:shop"]
    )

    assert "22023" == sqlstate(sql.value.orig)
    assert (1, f"Error: {refused}\n") == (shell.exit_code, shell.stderr)
    assert before == state(beat)


def test_a_row_that_is_given_to_the_code_by_an_update_becomes_its_own(beat: PgBeat) -> None:
    beat.schedule("a", "t", "@daily")

    beat.database.execute("update pgbeat.periodic_task set managed_by = 'code:shop'")
    deploy(beat.database, "a", "b")

    assert [("a", "crontab: 0 * * * *", "code:shop"), ("b", "crontab: 0 * * * *", "code:shop")] == [
        (name, schedule, manager) for name, schedule, manager, _ in state(beat)
    ]


def test_take_over_takes_it_and_the_code_no_longer_changes_it(beat: PgBeat) -> None:
    deploy(beat.database, "a", "b", "c")

    beat.schedule("a", "t", "@daily", take_over=True)
    beat.schedule_many([{"name": "b", "task": "t", "schedule": "@daily", "take_over": True}])
    beat.database.execute("select pgbeat.schedule('c', 't', '@daily', take_over => true)")
    deploy(beat.database, "a", "b", "c", "d")
    beat.schedule("a", "t", "@weekly")

    assert [("a", "@weekly", "api"), ("b", "@daily", "api"), ("c", "@daily", "sql")] == [
        (row.name, row.schedule, row.managed_by) for row in beat.list() if row.name != "d"
    ]


def test_a_row_that_the_code_no_longer_declares_is_free(beat: PgBeat) -> None:
    deploy(beat.database, "a", "b")
    deploy(beat.database, "b")

    assert ("@daily", "api") == (beat.schedule("a", "t", "@daily").schedule, beat.get("a").managed_by)


def test_the_doctor_names_a_row_that_the_app_declares_and_another_manages(beat: PgBeat) -> None:
    beat.schedule("a", "t", "@daily")
    deploy(beat.database, "a", "b")
    operators = AdminQueries(beat.database)

    (found,) = code.of_other_managers(operators, Settings(), shop("a", "b"))
    beat.database.execute(found.mend.partition("restart the beats: ")[2])
    deploy(beat.database, "a", "b")

    assert (
        "code:shop declares 'a', but the row is managed by 'api': what the code says of it has no effect." == found.what
    )
    assert "crontab: 0 * * * *" == beat.get("a").schedule
    assert [] == list(code.of_other_managers(operators, Settings(), shop("a", "b")))
