"""Rows as the code declares them: what a sync writes, and above all what it does not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg2
import pytest
from celery import Celery
from celery.beat import BeatLazyFunc, ScheduleEntry
from celery.schedules import BaseSchedule, crontab
from celery.signals import import_modules

from celery_pgbeat import PgBeat, cron, every
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.declare import declarations_of
from celery_pgbeat.errors import DatabaseUnavailable, InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.postgres.engine import normalise_url
from celery_pgbeat.settings import Settings

FAR = datetime(3000, 1, 1, tzinfo=timezone.utc)
ERRORS = logging.ERROR


@pytest.fixture
def database(migrated_database: str) -> Iterator[Database]:
    made = Database(migrated_database)
    yield made
    made.close()


def shop(schedule: dict[str, Any] | None = None, name: str = "shop", **conf: Any) -> Celery:
    """An app as its code stands at one deploy; without results, so that Celery adds no entry of its own."""
    app = Celery(name, broker="memory://", set_as_current=False)
    app.conf.update(result_expires=None, beat_schedule=schedule or {}, **conf)
    return app


def deploy(app: Celery, database: Database, **settings: Any) -> CodeSchedules:
    """Start a beat with this code."""
    code = CodeSchedules(app, database, Settings(**settings))
    code.sync()
    return code


def rows(database: Database) -> dict[str, Any]:
    found = database.execute("select *, xmin::text as version from pgbeat.periodic_task order by name")
    return {row.name: row for row in found}


def plan(database: Database) -> None:
    """Plan all rows, as a beat does."""
    database.execute("update pgbeat.periodic_task set planned_revision = revision, next_run_at = %(at)s", {"at": FAR})


def hourly(**keys: Any) -> dict[str, Any]:
    return {"task": "shop.sync", "schedule": crontab(minute=0), **keys}


def test_what_the_configuration_declares_becomes_rows(database: Database) -> None:
    app = shop({"a": hourly(args=(1,), kwargs={"b": 2}, options={"queue": "q", "priority": 3, "expires": 60})})
    app.conf.timezone = "Europe/Berlin"

    deploy(app, database)

    row = rows(database)["a"]
    assert (row.task, row.schedule, row.timezone) == ("shop.sync", "crontab: 0 * * * *", "Europe/Berlin")
    assert (row.queue, row.priority, row.managed_by) == ("q", 3, "code:shop")
    assert (row.args, row.kwargs, row.options) == ([1], {"b": 2}, {"expires": 60})


def test_tasks_added_when_the_app_is_finalised_become_rows(database: Database) -> None:
    app = shop()

    @app.on_after_finalize.connect
    def add(sender: Celery, **_: Any) -> None:
        sender.add_periodic_task(30.0, sender.signature("shop.sync", args=(7,)), name="by-signature", queue="q")

    deploy(app, database)

    row = rows(database)["by-signature"]
    assert (row.schedule, row.args, row.queue) == ("every 30s", [7], "q")


def test_entries_may_be_objects_of_celery_too(database: Database) -> None:
    app = shop()
    app.conf.beat_schedule = {"a": ScheduleEntry("a", "shop.sync", schedule=timedelta(hours=1), app=app)}

    deploy(app, database)

    assert rows(database)["a"].schedule == "every 1h"


def test_decorated_tasks_become_rows_whichever_decorator_is_on_top(database: Database) -> None:
    app = shop()
    beat = PgBeat(app)

    @beat.periodic_task(cron("0 3 * * *", timezone="Europe/Berlin"), overlap="allow")
    @app.task(shared=False, name="shop.report")
    def above() -> None: ...

    @app.task(shared=False, name="shop.poll", bind=True)
    @beat.periodic_task(every("5m"), kwargs={"box": 1})
    def below(self: Any, box: int) -> None: ...

    @beat.periodic_task("@weekly", name="weekly")
    @beat.periodic_task("@monthly", name="monthly")
    @app.task(shared=False, name="shop.count")
    def twice() -> None: ...

    deploy(app, database)

    found = rows(database)
    assert {"shop.report", "shop.poll", "weekly", "monthly"} == set(found)
    assert (found["shop.report"].timezone, found["shop.report"].overlap) == ("Europe/Berlin", "allow")
    assert (found["shop.poll"].task, found["shop.poll"].kwargs) == ("shop.poll", {"box": 1})
    assert found["monthly"].task == "shop.count"


def test_decorating_neither_makes_the_task_nor_reads_the_configuration() -> None:
    app = Celery("shop", set_as_current=False)
    beat = PgBeat(app)

    @beat.periodic_task("@daily")
    @app.task(shared=False)
    def report() -> None: ...

    assert not app.configured
    assert not app.finalized
    assert not report.__evaluated__()
    assert len(declarations_of(app)) == 1


def test_a_decorated_task_is_still_the_task() -> None:
    app = shop()

    @PgBeat(app).periodic_task("@daily")
    @app.task(shared=False, name="shop.report")
    def report() -> int:
        return 7

    assert (report.name, report()) == ("shop.report", 7)


def test_a_wrong_decorator_fails_where_it_stands() -> None:
    beat = PgBeat(shop())

    with pytest.raises(InvalidSchedule, match="hour 25 is not in 0-23"):
        beat.periodic_task("0 25 * * *")
    with pytest.raises(InvalidPeriodicTask, match=r"args\[0\]"):
        beat.periodic_task("@daily", args=[object()])
    with pytest.raises(InvalidPeriodicTask, match="needs PgBeat\\(app\\)"):
        PgBeat().periodic_task("@daily")


def test_starting_again_with_equal_code_writes_nothing(database: Database) -> None:
    def code() -> Celery:
        app = shop({"a": hourly(), "b": {"task": "t", "schedule": 0.1 + 1.2, "kwargs": {"x": 1e308, "ü": [0.1, None]}}})
        beat = PgBeat(app)

        @beat.periodic_task("@yearly", run_on_start=True, max_run_time="50%", start_at=datetime(2026, 1, 1))
        @app.task(shared=False, name="shop.yearly")
        def yearly() -> None: ...

        return app

    deploy(code(), database)
    plan(database)
    database.execute("update pgbeat.periodic_task set marked_by = 'beat-a', marked_at = pgbeat.now()")
    before = rows(database)

    for _ in range(3):
        assert deploy(code(), database).is_in_sync

    assert before == rows(database)
    assert all(row.marked_by == "beat-a" and row.next_run_at == FAR for row in before.values())


def test_starting_again_wakes_no_beat(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    listener = psycopg2.connect(plain_url(database))
    listener.autocommit = True
    with listener.cursor() as cursor:
        cursor.execute("listen pgbeat")
        deploy(shop({"a": hourly()}), database)
        cursor.execute("select 1")
        assert listener.notifies == []
        deploy(shop({"a": hourly(args=(1,))}), database)
        cursor.execute("select 1")
        assert len(listener.notifies) == 1
    listener.close()


def test_a_new_row_may_run_at_once_and_restarts_do_not_run_it_again(database: Database) -> None:
    code = shop({"a": hourly(pgbeat={"run_on_start": True})})

    deploy(code, database)
    first = rows(database)["a"].next_run_at
    plan(database)
    deploy(code, database)

    assert first is not None
    assert first < FAR
    assert rows(database)["a"].next_run_at == FAR


def test_only_the_column_that_code_changed_is_written(database: Database) -> None:
    deploy(shop({"a": hourly(), "b": hourly()}), database)
    plan(database)
    database.execute("update pgbeat.periodic_task set max_run_time = '5 minutes', args = '[9]' where name = 'a'")
    untouched = rows(database)["b"]

    deploy(shop({"a": hourly(kwargs={"x": 1}), "b": hourly()}), database)

    row = rows(database)["a"]
    assert (row.kwargs, row.args, row.max_run_time) == ({"x": 1}, [9], timedelta(minutes=5))
    assert row.next_run_at == FAR
    assert untouched == rows(database)["b"]


@pytest.mark.parametrize(
    ("column", "said", "stored"),
    [
        ("jitter", "90s", timedelta(seconds=90)),
        ("catchup", "all", "all"),
        ("catchup_limit", 7, 7),
        ("min_gap", "55s", timedelta(seconds=55)),
        ("pause_after_failures", 3, 3),
        ("blackout", "cron: 0 0 * * sat P2D; window: night", ["cron: 0 0 * * sat P2D; window: night"]),
        ("blackout", ["0 0 * * sat P2D", "window: night"], ["0 0 * * sat P2D", "window: night"]),
        ("blackout_action", "skip", "skip"),
    ],
)
def test_a_column_that_code_says_is_declared_amended_and_taken_back(
    database: Database, caplog: pytest.LogCaptureFixture, column: str, said: Any, stored: Any
) -> None:
    caplog.set_level(logging.INFO)
    plain, with_column = {"a": hourly()}, {"a": hourly(pgbeat={column: said}), "b": hourly(pgbeat={column: said})}

    deploy(shop(plain), database)
    default = getattr(rows(database)["a"], column)
    deploy(shop(with_column), database)

    assert [stored, stored] == [getattr(row, column) for row in rows(database).values()]
    assert f"Changed 'a' as the code did: {column}" in caplog.text
    before = rows(database)
    deploy(shop(with_column), database)
    assert before == rows(database)
    deploy(shop(plain), database)
    assert default == getattr(rows(database)["a"], column)


def test_an_edit_stands_until_code_changes_that_very_column(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    database.execute("update pgbeat.periodic_task set schedule = 'every 5m', subject = 'mine'")

    deploy(shop({"a": hourly()}), database)
    assert rows(database)["a"].schedule == "every 5m"

    deploy(shop({"a": hourly(schedule=crontab(minute=30))}), database)
    row = rows(database)["a"]
    assert (row.schedule, row.subject) == ("crontab: 30 * * * *", "mine")


def test_a_column_that_code_says_no_more_gets_its_default(database: Database) -> None:
    deploy(shop({"a": hourly(options={"queue": "q"}, pgbeat={"overlap": "allow"})}), database)

    deploy(shop({"a": hourly()}), database)

    row = rows(database)["a"]
    assert (row.queue, row.overlap) == (None, "skip")


def test_a_changed_schedule_is_planned_anew(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    plan(database)

    deploy(shop({"a": hourly(schedule=3600)}), database)

    row = rows(database)["a"]
    assert row.next_run_at is None
    assert row.planned_revision != row.revision


def test_a_pause_survives_deploys_even_of_changed_code(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    database.execute("update pgbeat.periodic_task set enabled = false, pause_reason = 'stocktaking'")

    deploy(shop({"a": hourly()}), database)
    deploy(shop({"a": hourly(schedule=crontab(minute=1))}), database)

    row = rows(database)["a"]
    assert (row.enabled, row.pause_reason, row.schedule) == (False, "stocktaking", "crontab: 1 * * * *")


def test_a_declaration_that_vanishes_pauses_its_row_and_says_so(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    deploy(shop({"a": hourly(), "b": hourly()}), database)

    deploy(shop({"b": hourly()}), database)

    gone, kept = rows(database)["a"], rows(database)["b"]
    assert (gone.enabled, gone.paused_by, gone.pause_reason) == (False, "code:shop", "no longer declared by code:shop")
    assert kept.enabled
    assert "Paused 'a', which the code no longer declares" in caplog.text


def test_a_declaration_that_returns_resumes_its_row(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    deploy(shop(), database)

    deploy(shop({"a": hourly(args=(1,))}), database)

    row = rows(database)["a"]
    assert (row.enabled, row.paused_by, row.pause_reason, row.args) == (True, None, None, [1])


def test_a_declaration_that_returns_leaves_an_operators_pause(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    database.execute("select pgbeat.pause('a', 'stocktaking')")
    deploy(shop(), database)

    deploy(shop({"a": hourly()}), database)

    assert (rows(database)["a"].enabled, rows(database)["a"].pause_reason) == (False, "stocktaking")


def test_rows_of_others_are_never_touched_and_that_is_said_once(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute(
        "insert into pgbeat.periodic_task (name, task, schedule) values ('a', 't', '@daily'), ('x', 't', '@daily')"
    )
    deploy(shop({"c": hourly()}, name="other"), database)
    before = rows(database)

    code = deploy(shop({"a": hourly()}), database)
    code.sync()
    deploy(shop(), database)

    assert before == rows(database)
    assert code.is_in_sync
    assert caplog.text.count("'a' is declared in code, but its row is managed by 'sql'") == 1


def test_one_bad_entry_is_refused_alone_with_the_way_out(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    class Lunar(BaseSchedule):
        def __repr__(self) -> str:
            return "<lunar>"

    def broken() -> datetime:
        raise RuntimeError("no clock")

    code = deploy(
        shop(
            {
                "custom": {"task": "t", "schedule": Lunar()},
                "object": {"task": "t", "schedule": 60, "args": (object(),)},
                "fast": {"task": "t", "schedule": 0.5},
                "typo": {"task": "t", "shedule": 60},
                "clock": {"task": "t", "schedule": crontab(nowfun=broken)},
                "secret": {"task": "os.remove", "schedule": 60},
                "good": {"task": "t", "schedule": 60},
            }
        ),
        database,
        allowed_tasks=("t",),
    )

    assert set(rows(database)) == {"good"}
    assert code.is_in_sync
    said = {record.args[0]: str(record.args[1]) for record in caplog.records if record.levelno == ERRORS}  # type: ignore[index]
    assert set(said) == {"custom", "object", "fast", "typo", "clock", "secret"}
    assert "decides in Python when it is due" in said["custom"]
    assert "args[0] is an object that is not JSON" in said["object"]
    assert "pgbeat_min_interval is 1 s" in said["fast"]
    assert "Did you mean 'schedule'?" in said["typo"]
    assert "no clock" in said["clock"]
    assert "pgbeat_allowed_tasks" in said["secret"]


def test_an_entry_that_is_refused_leaves_its_row_as_it_was(database: Database) -> None:
    def code(interval: float) -> Celery:
        app = shop({"a": {"task": "t", "schedule": interval}})
        beat = PgBeat(app)

        @beat.periodic_task(interval)
        @app.task(shared=False, name="shop.poll")
        def poll() -> None: ...

        return app

    deploy(code(60), database)
    before = rows(database)

    deploy(code(0.5), database)

    assert before == rows(database)
    assert set(before) == {"a", "shop.poll"}


def test_what_postgres_alone_refuses_is_refused_alone(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    # Python cannot know this one: it is a constraint that somebody has added to his table.
    database.execute("alter table pgbeat.periodic_task add constraint no_fools check (subject <> 'fool')")
    code = {"a": hourly(), "b": hourly(pgbeat={"subject": "fool"}), "c": hourly()}

    deploy(shop(code), database)
    deploy(shop({**code, "a": hourly(args=(1,)), "c": hourly(pgbeat={"subject": "fool"})}), database)

    found = rows(database)
    assert set(found) == {"a", "c"}
    assert (found["a"].args, found["c"].subject) == ([1], None)
    assert "The periodic task 'b' in code is refused, the others go on" in caplog.text


def test_one_name_declared_twice_is_refused_if_it_means_two_things(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = shop({"a": hourly()})
    beat = PgBeat(app)

    @beat.periodic_task("@daily", name="b")
    @beat.periodic_task("@daily", name="b")
    @beat.periodic_task("@daily", name="a")
    @app.task(shared=False, name="t")
    def task() -> None: ...

    deploy(app, database)

    assert rows(database)["a"].schedule == "crontab: 0 * * * *"
    assert [record.args[0] for record in caplog.records if record.levelno == ERRORS] == ["a"]  # type: ignore[index]


def test_a_decorated_function_that_is_no_task_is_refused_with_the_way_out(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = shop()

    @PgBeat(app).periodic_task("@daily")
    def forgotten() -> None: ...

    deploy(app, database)

    assert rows(database) == {}
    assert "forgotten is a plain function: put @beat.periodic_task above @app.task" in caplog.text


def test_lazy_arguments_are_kept_for_the_moment_of_sending(database: Database) -> None:
    calls: list[int] = []
    lazy = BeatLazyFunc(calls.append, 1)

    code = deploy(shop({"a": hourly(args=(lazy, 2), kwargs={"x": lazy}), "b": hourly()}), database)

    row = rows(database)["a"]
    assert (row.lazy, row.args, row.kwargs) == (True, ["<BeatLazyFunc>", 2], {"x": "<BeatLazyFunc>"})
    assert code.lazy_names == ["a"]
    assert code.lazy_entry("a") == ((lazy, 2), {"x": lazy})
    assert code.lazy_entry("b") is None
    assert (rows(database)["b"].lazy, calls) == (False, [])


def test_an_entry_that_is_lazy_no_more_can_be_sent_by_any_beat(database: Database) -> None:
    deploy(shop({"a": hourly(args=(BeatLazyFunc(int),))}), database)

    code = deploy(shop({"a": hourly(args=(5,))}), database)

    assert (rows(database)["a"].lazy, rows(database)["a"].args, code.lazy_names) == (False, [5], [])


def test_lazy_arguments_never_replace_those_of_another_manager_s_row(database: Database) -> None:
    database.execute("insert into pgbeat.periodic_task (name, task, args) values ('a', 't', '[1]')")

    code = deploy(shop({"a": hourly(args=(BeatLazyFunc(int),))}), database)

    assert (code.lazy_names, code.lazy_entry("a")) == ([], None)


@pytest.mark.parametrize(
    ("backend", "expires", "names"),
    [
        ("db+sqlite://", 60, ["celery.backend_cleanup"]),
        ("db+sqlite://", None, []),
        ("cache+memory://", 60, []),
    ],
)
def test_the_results_are_cleaned_up_by_celerys_own_rule(
    database: Database, backend: str, expires: int | None, names: list[str]
) -> None:
    app = shop()
    app.conf.update(result_backend=backend, result_expires=expires)

    deploy(app, database)

    found = rows(database)
    assert list(found) == names
    for row in found.values():
        assert (row.schedule, row.options) == ("crontab: 0 4 * * *", {"expires": 43_200})


def test_an_entry_of_ones_own_for_the_cleanup_wins(database: Database) -> None:
    app = shop({"celery.backend_cleanup": {"task": "celery.backend_cleanup", "schedule": 7200}})
    app.conf.update(result_backend="db+sqlite://", result_expires=60)

    deploy(app, database)

    assert rows(database)["celery.backend_cleanup"].schedule == "every 2h"


def test_a_result_backend_that_cannot_be_used_stops_no_schedule(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = shop({"a": hourly()})
    app.conf.update(result_backend="nonsense://", result_expires=60)

    deploy(app, database)

    assert set(rows(database)) == {"a"}
    assert "The result backend cannot be used" in caplog.text


def test_the_starting_deadline_is_the_catchup_window_of_crontabs_that_say_nothing(database: Database) -> None:
    app = shop(
        {
            "crontab": hourly(),
            "cron": hourly(schedule=cron("@daily")),
            "own": hourly(pgbeat={"catchup_window": "1h"}),
            "unlimited": hourly(pgbeat={"catchup_window": None}),
            "interval": hourly(schedule=60),
        },
        beat_cron_starting_deadline=600,
    )

    deploy(app, database)

    windows = {name: row.catchup_window for name, row in rows(database).items()}
    ten_minutes = timedelta(minutes=10)
    assert windows == {
        "crontab": ten_minutes,
        "cron": ten_minutes,
        "own": timedelta(hours=1),
        "unlimited": None,
        "interval": None,
    }


def test_many_beats_that_start_at_once_make_each_row_once(database: Database, migrated_database: str) -> None:
    code = {f"row-{number}": hourly(args=(number,)) for number in range(200)}
    changed = {f"row-{number}": hourly(args=(number, "new")) for number in range(100)}
    barrier = threading.Barrier(6)

    def start(schedule: dict[str, Any]) -> None:
        own = Database(migrated_database)
        app = shop(schedule)
        app.finalize()
        barrier.wait(20)
        deploy(app, own)
        own.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(start, [code] * 6))
        first = rows(database)
        list(pool.map(start, [changed] * 6))
    second = rows(database)

    assert len(first) == 200
    assert {row.revision for row in first.values()} == {1}
    assert {(row.revision, row.enabled) for name, row in second.items() if name in changed and name != "row-0"} == {
        (2, True)
    }
    assert [row.enabled for name, row in second.items() if name not in changed] == [False] * 100


def test_a_locked_row_is_skipped_and_logged_as_behind(database: Database) -> None:
    deploy(shop({"a": hourly(), "b": hourly()}), database)
    holder = psycopg2.connect(plain_url(database))
    with holder.cursor() as cursor:
        cursor.execute("select from pgbeat.periodic_task where name = 'a' for update")
    changed = CodeSchedules(shop({"a": hourly(args=(1,)), "b": hourly(args=(1,))}), database, Settings())

    changed.sync()

    assert not changed.is_in_sync
    assert ([], [1]) == (rows(database)["a"].args, rows(database)["b"].args)
    holder.rollback()
    holder.close()
    changed.sync()
    assert changed.is_in_sync
    assert rows(database)["a"].args == [1]


def test_a_row_handed_over_to_code_is_brought_to_what_code_says(database: Database) -> None:
    database.execute("insert into pgbeat.periodic_task (name, task, schedule, queue) values ('a', 't', '@daily', 'q')")
    database.execute("update pgbeat.periodic_task set managed_by = 'code:shop'")

    deploy(shop({"a": hourly()}), database)

    row = rows(database)["a"]
    assert (row.task, row.schedule, row.queue) == ("shop.sync", "crontab: 0 * * * *", None)


def test_a_row_that_an_operator_takes_over_is_his(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    database.execute("update pgbeat.periodic_task set managed_by = 'sql'")
    before = rows(database)

    deploy(shop({"a": hourly(args=(1,))}), database)
    deploy(shop(), database)

    assert before == rows(database)


def test_a_column_that_came_with_a_later_version_counts_as_declared_with_its_default(database: Database) -> None:
    deploy(shop({"a": hourly()}), database)
    database.execute(
        "update pgbeat.periodic_task set declared = declared - array['subject', 'blackout', 'blackout_action'], "
        "subject = 'mine', blackout = array['0 0 * * * PT5H'], blackout_action = 'skip'"
    )

    deploy(shop({"a": hourly()}), database)

    row = rows(database)["a"]
    assert ("mine", ["0 0 * * * PT5H"], "skip") == (row.subject, row.blackout, row.blackout_action)
    assert row.declared.keys() >= {"subject", "blackout", "blackout_action"}


def test_errors_of_the_code_are_logged_once_however_often_the_database_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/nowhere")
    code = CodeSchedules(shop({"bad": {"task": "t", "schedule": 0.1}, "good": hourly()}), away, Settings())

    for _ in range(3):
        with pytest.raises(DatabaseUnavailable):
            code.sync()

    assert len([record for record in caplog.records if record.levelno == ERRORS]) == 1


def test_modules_that_the_worker_imports_may_declare(database: Database) -> None:
    app = shop()
    beat = PgBeat(app)

    def import_tasks(**_: Any) -> None:
        @beat.periodic_task("@daily")
        @app.task(shared=False, name="shop.late")
        def late() -> None: ...

    import_modules.connect(import_tasks, sender=app)
    app.loader.import_default_modules()  # as `celery beat` does before it builds the scheduler

    deploy(app, database)

    assert set(rows(database)) == {"shop.late"}


def plain_url(database: Database) -> str:
    return normalise_url(database.url).set(drivername="postgresql").render_as_string(hide_password=False)


def test_code_declares_what_comes_after_other_tasks_in_any_order(database: Database) -> None:
    app = shop(
        {
            "a last one": {"task": "shop.load", "pgbeat": {"after": ["sums"]}},
            "sums": {"task": "shop.sums", "pgbeat": {"after": "the first"}},
            "the first": hourly(),
            "sign off": {"schedule": None, "pgbeat": {"kind": "human", "after": ["a last one"]}},
        }
    )

    @PgBeat(app).periodic_task(name="publish", after=["sign off"])
    @app.task(name="shop.publish", shared=False)
    def publish() -> None: ...

    deploy(app, database)

    found = rows(database)
    assert {"a last one": ["sums"], "sums": ["the first"], "the first": None} == {
        name: found[name].after for name in ("a last one", "sums", "the first")
    }
    assert (["a last one"], None, "human") == (found["sign off"].after, found["sign off"].schedule, "human")
    assert (["sign off"], None) == (found["publish"].after, found["publish"].schedule)


def test_no_beat_waits_for_an_open_transaction_that_writes_after(database: Database) -> None:
    deploy(shop({"a": hourly(), "b": hourly()}), database)
    database.execute("insert into pgbeat.periodic_task (name, task, schedule) values ('of sql', 't', '@daily')")
    author = psycopg2.connect(plain_url(database))
    with author.cursor() as cursor:
        cursor.execute("update pgbeat.periodic_task set after = array['a'] where name = 'of sql'")
    later = {"after": ["a"]}
    code = CodeSchedules(
        shop({"a": hourly(args=(1,)), "b": hourly(pgbeat=later), "c": hourly(pgbeat=later), "d": hourly()}),
        database,
        Settings(),
    )

    code.sync()

    assert not code.is_in_sync
    assert {"a", "b", "d", "of sql"} == rows(database).keys()
    assert ([1], None) == (rows(database)["a"].args, rows(database)["b"].after)
    author.rollback()
    author.close()
    code.sync()
    assert code.is_in_sync
    assert (["a"], ["a"]) == (rows(database)["b"].after, rows(database)["c"].after)


def test_a_bad_declaration_keeps_none_from_its_place_in_the_order(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(ERRORS)
    deploy(
        shop(
            {
                "a last one": {"task": "shop.load", "pgbeat": {"after": ["the first"]}},
                "lost": {"task": "shop.load", "pgbeat": {"after": ["nowhere"]}},
                "one": {"task": "shop.load", "pgbeat": {"after": ["two"]}},
                "two": {"task": "shop.load", "pgbeat": {"after": ["one"]}},
                "the first": hourly(),
            }
        ),
        database,
    )

    assert {"a last one", "the first"} == set(rows(database))
    assert "after names 'nowhere', and no periodic task is named so" in caplog.text
    assert {"lost", "one", "two"} == {
        row.name for row in database.execute("select name from pgbeat.refused_declaration")
    }
