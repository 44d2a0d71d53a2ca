"""Celery's methods that change the entries of a scheduler at run time declare rows, as `beat_schedule` does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import crontab

from celery_pgbeat import PgBeat, every
from celery_pgbeat.beat.scheduler import Scheduler
from celery_pgbeat.errors import InvalidPeriodicTask, SchedulerNotSetUp
from tests.harness.processes import ROOT, Cluster
from tests.harness.rows import insert, jobs, sql
from tests.harness.wait import eventually

DAILY = {"task": "shop.report", "schedule": crontab(minute=0, hour=3)}
Make = Callable[..., Scheduler]


def app_of(url: str, schedule: Mapping[str, Any] | None = None, **settings: Any) -> Celery:
    app = Celery("declares", broker="memory://", set_as_current=False)
    app.conf.update(
        beat_scheduler="pgbeat",
        pgbeat_url=url,
        pgbeat_poll=0.05,
        pgbeat_heartbeat=1,
        pgbeat_dead_after=3,  # for this long, a declaration that a beat left counts as that of another beat
        result_expires=None,
        beat_schedule=dict(schedule or {}),
        **settings,
    )
    return app


@pytest.fixture
def make(migrated_database: str) -> Iterator[Make]:
    """Make a beat's scheduler, in this process."""
    made: list[Scheduler] = []

    def start(schedule: Mapping[str, Any] | None = None, kind: type[Scheduler] = Scheduler) -> Scheduler:
        made.append(kind(app_of(migrated_database, schedule)))
        return made[-1]

    yield start
    for scheduler in made:
        scheduler.close()


def rows(url: str) -> dict[str, dict[str, Any]]:
    found = sql(
        url, "select name, task, schedule, enabled, paused_by, managed_by, args, kwargs from pgbeat.periodic_task"
    )
    return {row.pop("name"): dict(row) for row in found}


def enabled(url: str) -> set[str]:
    return {name for name, row in rows(url).items() if row["enabled"]}


def written(url: str, scheduler: Scheduler, expected: set[str]) -> None:
    """Have cycles run until these rows are enabled, and no others."""

    def are_written() -> bool:
        scheduler.tick()
        return enabled(url) == expected

    eventually(are_written, 20, f"{expected} are enabled")


def test_an_entry_added_before_the_first_cycle_becomes_a_row_of_the_code(make: Make, migrated_database: str) -> None:
    scheduler = make({"a": DAILY})

    entry = scheduler.add(name="b", task="shop.sync", schedule=timedelta(minutes=5), args=(1,), kwargs={"x": 2})
    scheduler.update_from_dict({"c": {"task": "shop.poll", "schedule": every("30s"), "pgbeat": {"overlap": "allow"}}})
    scheduler.schedule["d"] = ScheduleEntry("d", "shop.count", schedule=crontab(minute=5), app=scheduler.app)
    scheduler.schedule.update({"e": {"task": "shop.poll", "schedule": 60}}, f={"task": "shop.poll", "schedule": 90})

    assert ("b", "shop.sync", timedelta(minutes=5)) == (entry.name, entry.task, entry.schedule.run_every)
    assert {"b", "c", "d", "e", "f"} == set(scheduler.schedule)
    written(migrated_database, scheduler, {"a", "b", "c", "d", "e", "f"})
    row = rows(migrated_database)["b"]
    assert ("every 5m", [1], {"x": 2}, "code:declares") == (
        row["schedule"],
        row["args"],
        row["kwargs"],
        row["managed_by"],
    )
    assert {"a", "b", "c", "d", "e", "f"} == set(scheduler.schedule)
    assert {"a"} == set(scheduler.app.conf.beat_schedule)


def test_an_entry_added_to_a_working_beat_is_synced_with_its_next_cycle(make: Make, migrated_database: str) -> None:
    scheduler = make({"a": DAILY})
    written(migrated_database, scheduler, {"a"})

    scheduler.add(name="b", task="shop.sync", schedule=30)
    written(migrated_database, scheduler, {"a", "b"})
    scheduler.add(name="b", task="shop.sync", schedule=60)
    eventually(lambda: scheduler.tick() or rows(migrated_database)["b"]["schedule"] == "every 1m", 10, "changed")


def test_merging_replaces_the_configured_entries(make: Make, migrated_database: str) -> None:
    insert(migrated_database, "sql", "every 1h")
    scheduler = make({"a": DAILY, "b": DAILY})

    @PgBeat(scheduler.app, migrated_database).periodic_task("@daily", name="decorated")
    @scheduler.app.task(name="shop.decorated", shared=False)
    def decorated() -> None: ...

    written(migrated_database, scheduler, {"a", "b", "decorated", "sql"})

    scheduler.merge_inplace({"b": DAILY, "c": DAILY})

    written(migrated_database, scheduler, {"b", "c", "decorated", "sql"})
    assert "code:declares" == rows(migrated_database)["a"]["paused_by"]

    scheduler.merge_inplace(scheduler.app.conf.beat_schedule)
    written(migrated_database, scheduler, {"a", "b", "decorated", "sql"})


def test_entries_can_be_cleared_and_updated_as_custom_schedulers_do(make: Make, migrated_database: str) -> None:
    class Own(Scheduler):
        def setup_schedule(self) -> None:
            super().setup_schedule()
            self.schedule.clear()
            self.schedule.update({"b": DAILY})
            self.install_default_entries(self.schedule)

    scheduler = make({"a": DAILY}, Own)
    written(migrated_database, scheduler, {"b"})
    scheduler.schedule = {"c": DAILY}
    written(migrated_database, scheduler, {"c"})


def test_a_deleted_entry_is_not_declared_any_more_and_other_rows_stay(make: Make, migrated_database: str) -> None:
    insert(migrated_database, "sql", "every 1h")
    scheduler = make({"a": DAILY, "b": DAILY})
    scheduler.add(name="c", task="shop.sync", schedule=30)
    written(migrated_database, scheduler, {"a", "b", "c", "sql"})

    del scheduler.schedule["a"]
    scheduler.schedule.pop("c")
    assert scheduler.schedule.pop("missing", None) is None
    with pytest.raises(InvalidPeriodicTask, match=r"'sql' is a row that .* beat.unschedule\('sql'\)"):
        del scheduler.schedule["sql"]

    written(migrated_database, scheduler, {"b", "sql"})


def test_only_the_bad_entry_is_refused_and_the_log_names_it(
    make: Make, migrated_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = make()

    scheduler.add(name="bad", task="shop.sync", schedule="every now and then")
    scheduler.update_from_dict({"worse": {"taks": "shop.sync", "schedule": 30}, "worst": 5, "good": DAILY})
    assert {"bad", "worse", "worst", "good"} == {entry.name for entry in scheduler.schedule.values()}

    written(migrated_database, scheduler, {"good"})
    scheduler.add(name="better", **DAILY)
    written(migrated_database, scheduler, {"better", "good"})
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert [1, 1, 1] == [sum(f"The periodic task '{name}' in code" in line for line in told) for name in WRONG]
    assert "Did you mean 'task'?" in "".join(told)


WRONG = ("bad", "worse", "worst")


def test_setting_an_entry_of_a_row_is_refused_and_the_error_names_the_way_out(
    make: Make, migrated_database: str
) -> None:
    """Its schedule may be only the nearest that Celery has."""
    insert(migrated_database, "sql", "0 0 L * *")
    scheduler = make()

    with pytest.raises(InvalidPeriodicTask, match=r"only shows a row: change the row with beat.schedule\('sql', …\)"):
        scheduler.schedule["copy"] = scheduler.schedule["sql"]
    with pytest.raises(InvalidPeriodicTask, match="only shows a row"):
        scheduler.merge_inplace(scheduler.schedule)


def test_a_lazy_scheduler_declares_nothing_and_its_error_says_what_does(migrated_database: str) -> None:
    scheduler = Scheduler(app_of(migrated_database), lazy=True)

    with pytest.raises(SchedulerNotSetUp, match=r"Use app.add_periodic_task\(\), or beat.schedule\(\)"):
        scheduler.add(name="a", **DAILY)


def test_a_subclass_that_does_not_call_setup_schedule_gets_an_error_that_says_so(migrated_database: str) -> None:
    class Own(Scheduler):
        def setup_schedule(self) -> None:
            self.merge_inplace(self.app.conf.beat_schedule)

    with pytest.raises(SchedulerNotSetUp, match=r"has not called super\(\).setup_schedule\(\)"):
        Own(app_of(migrated_database))


def test_an_entry_that_is_sent_by_hand_moves_no_row(make: Make, migrated_database: str) -> None:
    insert(migrated_database, "a", "every 1h", task="shop.sync")
    scheduler = make()
    sent: list[str] = []
    scheduler.send_task = lambda name, *_, **__: sent.append(name)  # type: ignore[method-assign]

    scheduler.apply_async(scheduler.schedule["a"])
    scheduler.apply_async(scheduler.Entry("b", "shop.count", schedule=30, app=scheduler.app))

    assert ["shop.sync", "shop.count"] == sent
    assert {"a"} == set(scheduler.schedule)
    assert [] == jobs(migrated_database)


def test_before_the_schema_exists_the_schedule_is_empty_and_the_log_says_why(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(app_of(database, {"a": DAILY}))
    with caplog.at_level(logging.INFO, "celery_pgbeat"):
        assert ([], 0, False) == (list(scheduler.schedule), len(scheduler.schedule), "a" in scheduler.schedule)
    scheduler.close()

    assert "No entries can be shown yet. The database has no pgbeat schema 'pgbeat' yet" in caplog.text


HANDLER = """
from celery.signals import beat_init
from tests.harness.probe_app import app

@beat_init.connect
def add(sender, **_):
    shown = list(sender.scheduler.schedule)
    sender.scheduler.add(name="added", task="app.probe", schedule=1, kwargs={"label": str(shown)})
"""


def test_a_beat_init_handler_may_read_and_add_entries_even_in_the_very_first_beat(
    cluster: Cluster, database: str, tmp_path: Any
) -> None:
    cluster.database = database
    (tmp_path / "handler_app.py").write_text(HANDLER)
    beat = cluster.beat(app="handler_app", environment={"PYTHONPATH": f"{ROOT}:{tmp_path}"}, wait=False)
    beat.wait_for_log("works on", 30)

    eventually(lambda: jobs(database, "added"), 20, "a job of what the handler added")
    assert "Traceback" not in beat.log
    assert {"label": "[]"} == rows(database)["added"]["kwargs"]


class Closing(Scheduler):
    synced = 0

    def sync(self) -> None:
        self.synced += 1


def test_closing_syncs_a_subclass_and_releases_what_celery_opened(make: Make) -> None:
    scheduler = make(kind=Closing)
    producer, connection = scheduler.producer, scheduler.connection
    assert producer is not None
    assert connection.connected

    scheduler.close()

    assert isinstance(scheduler, Closing)
    assert 1 == scheduler.synced
    assert not connection.connected
    assert "producer" not in vars(scheduler)
