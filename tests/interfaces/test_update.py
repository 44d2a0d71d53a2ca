"""`update` and `edit` change the columns that are named, and no others."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg2
import pytest
from celery import Celery

from celery_pgbeat import PgBeat, cron, every
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule, UnknownPeriodicTask
from tests.harness.cli_shapes import SHAPES, fault
from tests.harness.shell import Run

FAR = datetime(2099, 1, 1, tzinfo=timezone.utc)
GIVEN: dict[str, Any] = {
    "task": "mail.read",
    "schedule": "every 7m",
    "args": [1, {"a": "ü"}],
    "kwargs": {"box": 2},
    "queue": "fast",
    "priority": 7,
    "options": {"expires": 60},
    "sensitive": True,
    "timezone": "Asia/Tokyo",
    "anchor": datetime(2026, 1, 1, tzinfo=timezone.utc),
    "dst": "skip",
    "start_at": datetime(2026, 1, 2, tzinfo=timezone.utc),
    "end_at": datetime(2027, 1, 2, tzinfo=timezone.utc),
    "max_runs": 5,
    "jitter": timedelta(minutes=2, microseconds=1),
    "overlap": "allow",
    "catchup": "all",
    "catchup_window": timedelta(days=400, microseconds=1),
    "catchup_limit": 7,
    "min_gap": timedelta(seconds=55),
    "max_run_time": timedelta(minutes=30),
    "blackout": ["cron: 0 0 * * sat P2D"],
    "blackout_action": "skip",
    "submitter": "anna",
    "subject": "the inbox",
    "group_name": "mail",
    "pause_after_failures": 3,
    "on_lost": "rerun",
    "tracking": "send",
}


def values(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in GIVEN}


def execute(beat: PgBeat, statement: str) -> None:
    beat.database.execute(statement)


@pytest.mark.parametrize("column", GIVEN)
def test_one_column_is_changed_and_set_to_its_default_again_and_all_others_stay(beat: PgBeat, column: str) -> None:
    before = beat.schedule("mine", "mail.poll", every("5m"), timezone="Europe/Berlin")

    changed = beat.update("mine", **{column: GIVEN[column]})
    assert {**values(before), column: GIVEN[column]} == values(changed)
    if column not in ("task", "schedule", "timezone", "args", "kwargs", "options"):
        assert values(before) == values(beat.update("mine", **{column: None}))


def test_a_change_leaves_what_others_change_at_the_same_time(beat: PgBeat) -> None:
    beat.schedule("mine", "mail.poll", every("5m"))
    changes = [{"queue": "fast"}, {"priority": 3}, {"subject": "x"}, {"submitter": "anna"}, {"max_runs": 9}]

    for _ in range(5):
        beat.update("mine", queue=None, priority=None, subject=None, submitter=None, max_runs=None)
        with ThreadPoolExecutor(len(changes)) as pool:
            list(pool.map(lambda change: beat.update("mine", **change), changes))
        row = beat.get("mine")
        assert ("fast", 3, "x", "anna", 9) == (row.queue, row.priority, row.subject, row.submitter, row.max_runs)


def test_an_equal_value_writes_nothing_and_leaves_a_mark_on(beat: PgBeat) -> None:
    beat.schedule("mine", "mail.poll", every("5m"), queue="fast", jitter="30s")
    execute(beat, "update pgbeat.periodic_task set marked_by = 'beat-a', marked_at = pgbeat.now()")
    before = beat.get("mine")

    assert before == beat.update("mine", queue="fast", jitter=timedelta(seconds=30))
    assert "beat-a" == beat.get("mine").marked_by


def test_a_pause_and_the_next_run_stay_unless_the_times_change(beat: PgBeat) -> None:
    beat.schedule("mine", "mail.poll", every("5m"))
    execute(beat, "update pgbeat.periodic_task set planned_revision = revision, next_run_at = '2099-01-01 00:00Z'")
    beat.pause("mine", "stocktaking")

    row = beat.update("mine", queue="fast")
    assert (False, "stocktaking", FAR) == (row.enabled, row.pause_reason, row.next_run_at)
    assert beat.update("mine", schedule="every 6m").next_run_at is None


def test_a_schedule_brings_its_own_zone_along_and_no_other(beat: PgBeat) -> None:
    beat.schedule("mine", "mail.poll", "0 3 * * *", timezone="Europe/Berlin")

    assert "Europe/Berlin" == beat.update("mine", schedule=cron("0 4 * * *")).timezone
    assert "Asia/Tokyo" == beat.update("mine", schedule=cron("0 4 * * *", timezone="Asia/Tokyo")).timezone
    assert "Asia/Tokyo" == beat.update("mine", queue="fast").timezone


def test_an_app_in_another_zone_leaves_the_zone_of_the_row(beat: PgBeat, migrated_database: str) -> None:
    execute(beat, "insert into pgbeat.periodic_task (name, task, schedule) values ('mine', 'mail.poll', '0 3 * * *')")
    app = Celery("shop", set_as_current=False)
    app.conf.timezone = "Asia/Tokyo"
    other = PgBeat(app, url=migrated_database)

    assert other.update("mine", schedule="0 4 * * *").timezone is None
    other.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queu": "x"}, r"there is no column 'queu' to change\. Did you mean 'queue'\?"),
        ({"enabled": False}, "there is no column 'enabled'"),
        ({"overlap": "skp"}, "overlap is 'skp', not one of skip"),
        ({"end_at": datetime(2020, 1, 1, tzinfo=timezone.utc)}, "end_at 2020-01-01T00:00:00.*is before start_at"),
        ({"task": None}, "task is missing"),
        ({"task": Celery(set_as_current=False).signature("x", args=(1,))}, "task is a signature with arguments"),
        ({"kwargs": {"a": {1}}}, "kwargs"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(beat: PgBeat, change: dict[str, Any], message: str) -> None:
    before = beat.schedule("mine", "mail.poll", every("5m"), start_at=datetime(2026, 1, 1, tzinfo=timezone.utc))

    with pytest.raises(InvalidPeriodicTask, match=message):
        beat.update("mine", **change)
    assert before == beat.get("mine")


def test_a_wrong_schedule_and_an_unknown_name_are_named(beat: PgBeat) -> None:
    beat.schedule("nightly", "mail.poll", "0 3 * * *")

    with pytest.raises(InvalidSchedule, match="hour 25 is not in 0-23"):
        beat.update("nightly", schedule="0 25 * * *")
    with pytest.raises(UnknownPeriodicTask, match=r"'nigthly'\. Did you mean 'nightly'\?"):
        beat.update("nigthly", queue="fast")


def test_a_change_joins_the_transaction_of_the_caller(beat: PgBeat, migrated_database: str) -> None:
    beat.schedule("mine", "mail.poll", every("5m"))
    connection = psycopg2.connect(migrated_database)

    assert "fast" == beat.update("mine", queue="fast", connection=connection).queue
    connection.rollback()
    assert beat.get("mine").queue is None
    connection.close()


def test_the_shell_changes_what_is_named_and_prints_it_with_the_next_run(run: Run, beat: PgBeat) -> None:
    beat.schedule("mine", "mail.poll", "0 3 * * *", timezone="Europe/Berlin", queue="slow", max_run_time="30m")

    result = run("edit", "mine", "schedule=0 4 * * *", 'args=[1, "x"]', "queue=", "sensitive=no", "max_run_time=1h")

    assert 0 == result.exit_code, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert {
        "~ mine",
        "schedule: 0 3 * * * -> 0 4 * * *",
        "queue: slow -> nothing",
        "max_run_time: 30m -> 1h",
    } <= set(lines)
    assert lines[-1].startswith("The next run: ")
    assert lines[-1].endswith("(Europe/Berlin)")
    row = beat.get("mine")
    assert ("0 4 * * *", [1, "x"], None, timedelta(hours=1)) == (row.schedule, row.args, row.queue, row.max_run_time)


def test_the_shell_may_only_show_it_and_says_so_when_nothing_differs(run: Run, beat: PgBeat) -> None:
    before = beat.schedule("mine", "mail.poll", every("5m"))

    shown = run("edit", "mine", "blackout=cron: 0 0 * * sat P2D", "start_at=2026-01-01T00:00:00Z", "--dry-run")
    assert "Nothing was written." in shown.stdout
    assert before == beat.get("mine")
    assert "'mine' already has these values.\n" == run("edit", "mine", "queue=null").stdout


def test_the_shell_says_that_code_declares_the_row(run: Run, beat: PgBeat) -> None:
    beat.schedule("mine", "mail.poll", every("5m"))
    beat.database.execute("update pgbeat.periodic_task set managed_by = 'code:shop'")

    assert "code:shop declares this row" in run("edit", "mine", "queue=fast").stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("queue", "'queue' is not COLUMN=VALUE"),
        ("queu=x", "there is no column 'queu' to change. Did you mean 'queue'?"),
        ("args={", "the value is not JSON"),
        ("sensitive=perhaps", "'perhaps' is not true or false"),
        ("max_runs=many", "'many' is not a whole number"),
        ("start_at=soon", "'soon'"),
        ("enabled=false", "enabled is not changed by edit: `pause` and `resume` change it"),
        ("managed_by=ops", "managed_by is not changed by edit: `add --take-over` changes it"),
    ],
)
def test_what_the_shell_cannot_read_is_a_wrong_usage(run: Run, beat: PgBeat, change: str, message: str) -> None:
    before = beat.schedule("mine", "mail.poll", every("5m"))

    result = run("edit", "mine", change)
    assert 2 == result.exit_code
    assert message in result.stderr
    assert before == beat.get("mine")


def test_the_json_of_an_edit_has_its_documented_shape(run: Run, beat: PgBeat) -> None:
    beat.schedule("mine", "mail.poll", every("5m"))

    printed = json.loads(run("edit", "mine", "queue=fast", "--json").stdout)
    assert {"name": "mine", "applied": True, "changes": {"queue": {"from": None, "to": "fast"}}} == printed
    assert fault(SHAPES["edit"], printed) is None
