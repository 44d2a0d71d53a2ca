"""The limits that `docs/limits.md` names: at each of them all is well, and beyond it is what the page says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from celery import Celery
from psycopg2.extras import Json

from celery_pgbeat import PgBeat
from celery_pgbeat.api import importing
from celery_pgbeat.api.importing import Importer
from celery_pgbeat.beat import entries
from celery_pgbeat.beat.decide.planner import LONGEST_PROBLEM, problem_of
from celery_pgbeat.beat.entries import Entries
from celery_pgbeat.beat.upkeep.code_schedules import CodeSchedules
from celery_pgbeat.columns import CENTURY, YEAR
from celery_pgbeat.declare import columns, definition, options, texts
from celery_pgbeat.errors import InvalidPeriodicTask, InvalidSchedule
from celery_pgbeat.measures import gauges
from celery_pgbeat.measures.gauges import Gauges
from celery_pgbeat.postgres.admin_queries import AdminQueries
from celery_pgbeat.postgres.database import Database
from celery_pgbeat.schedules import parse, windows
from celery_pgbeat.settings import Settings
from celery_pgbeat.texts.plain_json import DEEPEST
from tests.harness.session import Session
from tests.harness.ticks import beat, insert

DAY = timedelta(days=1)
WINDOW = "0 0 * * * PT1M"
RULE = "RRULE:FREQ=DAILY"


def nested(levels: int) -> Any:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def recurrence_set(length: int) -> str:
    """Return a recurrence set of so many characters."""
    text = "RDATE:20261209"
    while len(text) + len(",20261209") <= length:
        text += ",20261209"
    return text.ljust(length, " ")


def arguments(size: int) -> list[str]:
    """Return arguments that take so many bytes together with empty `kwargs`, as Postgres writes them."""
    return ["x" * (size - len('[""]') - len("{}"))]


# For each limit: the column, what is just within, and what is just beyond.
LIMITS: dict[str, tuple[str, Any, Any]] = {
    "name": ("name", "n" * columns.LONGEST_NAME, "n" * (columns.LONGEST_NAME + 1)),
    "no name": ("name", "n", ""),
    "a control character": ("name", "é\u00a0", "a\x85b"),
    "group": ("group_name", "n" * columns.LONGEST_NAME, "n" * (columns.LONGEST_NAME + 1)),
    **{
        column: (column, "t" * texts.LONGEST_TEXT, "t" * (texts.LONGEST_TEXT + 1))
        for column in ("task", "queue", "submitter", "subject")
    },
    "schedule": ("schedule", "0 0 * * *".ljust(250), "0 0 * * *,".ljust(251, "1")),
    "recurrence set": ("schedule", recurrence_set(4_000), recurrence_set(4_000) + ",20261209"),
    "elements of blackout": ("blackout", ["window: a"] * windows.MOST_TEXTS, ["window: a"] * (windows.MOST_TEXTS + 1)),
    "windows of blackout": ("blackout", ["; ".join([WINDOW] * 20)], ["; ".join([WINDOW] * 20), WINDOW]),
    "an element of blackout": (
        "blackout",
        [WINDOW.ljust(windows.LONGEST_TEXT)],
        [WINDOW.ljust(windows.LONGEST_TEXT + 1)],
    ),
    "arguments": ("args", arguments(definition.LARGEST_ARGUMENTS), arguments(definition.LARGEST_ARGUMENTS + 1)),
    "options": (
        "options",
        {"headers": {"x": "x" * (definition.LARGEST_OPTIONS - len('{"headers": {"x": ""}}'))}},
        {"headers": {"x": "x" * (definition.LARGEST_OPTIONS - len('{"headers": {"x": ""}}') + 1)}},
    ),
    "nesting": ("args", nested(DEEPEST + 1), nested(DEEPEST + 2)),
    "digits": ("args", [10**309 - 1], [10**309]),
    "time limit": ("options", {"time_limit": options.LONGEST}, {"time_limit": options.LONGEST + 1}),
    **{column: (column, YEAR, YEAR + timedelta(seconds=1)) for column in ("jitter", "min_gap", "max_run_time")},
    "catchup_window": ("catchup_window", CENTURY, CENTURY + timedelta(seconds=1)),
    "priority": ("priority", 255, 256),
    "no priority": ("priority", 0, -1),
    **{
        column: (column, columns.LARGEST_INT, columns.LARGEST_INT + 1)
        for column in ("max_runs", "catchup_limit", "pause_after_failures")
    },
}


@pytest.fixture
def door(migrated_database: str) -> Iterator[PgBeat]:
    made = PgBeat(url=migrated_database)
    yield made
    made.close()


def in_sql(value: Any, column: str) -> Any:
    return Json(value) if column in ("args", "options") else value


@pytest.mark.parametrize(("column", "within", "beyond"), LIMITS.values(), ids=LIMITS)
def test_a_row_holds_what_the_page_says_and_no_more(
    door: PgBeat, session: Session, column: str, within: Any, beyond: Any
) -> None:
    row = {"name": "a", "task": "app.probe", "schedule": "0 3 * * *"}

    door.schedule(**{**row, column: within})
    with pytest.raises((InvalidPeriodicTask, InvalidSchedule)):
        door.schedule(**{**row, "name": "b", column: beyond})
    session.rows("delete from pgbeat.periodic_task")
    session.insert(**{**row, column: in_sql(within, column)})
    session.rows("delete from pgbeat.periodic_task")
    given = {**row, column: in_sql(beyond, column)}
    error = session.refusal(
        f"insert into pgbeat.periodic_task ({', '.join(given)}) values ({', '.join(['%s'] * len(given))})",
        *given.values(),
    )
    # A number beyond the type of its column does not come as far as our trigger.
    assert ("22003" if beyond == columns.LARGEST_INT + 1 else "22023") == error.pgcode
    assert [] == session.rows("select from pgbeat.periodic_task")


@pytest.mark.parametrize("column", ["pause_reason", "paused_by", "managed_by"])
def test_a_text_that_only_sql_writes_has_the_same_bound(session: Session, column: str) -> None:
    session.insert("a", **{column: "t" * texts.LONGEST_TEXT})

    statement = f"update pgbeat.periodic_task set {column} = %s"
    assert "22023" == session.refusal(statement, "t" * (texts.LONGEST_TEXT + 1)).pgcode


@pytest.mark.parametrize("column", ["start_at", "end_at", "anchor", "paused_until", "next_run_at"])
@pytest.mark.parametrize("instant", ["infinity", "-infinity", "10000-01-01", "0001-01-01 BC"])
def test_instants_outside_of_the_calendar_are_refused(session: Session, column: str, instant: str) -> None:
    session.insert("a", schedule="every 1h", enabled=False)

    error = session.refusal(f"update pgbeat.periodic_task set {column} = %s, enabled = false", instant)

    assert "22023" == error.pgcode


def test_a_problem_is_one_line_of_bounded_length() -> None:
    with pytest.raises(InvalidSchedule) as refused:
        parse("window\n" + "x" * 10_000)

    assert problem_of(refused.value).isprintable()
    assert LONGEST_PROBLEM >= len(problem_of(ValueError("x\n" * 10_000))) > LONGEST_PROBLEM - 10


def test_a_schedule_shows_so_many_entries_and_knows_the_others_by_name(
    migrated_database: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "LIMIT", 2)
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(pgbeat_url=migrated_database, result_expires=None)
    for name in "abc":
        session.insert(name, schedule="every 1h")

    shown = Entries(app, Database(migrated_database), CodeSchedules(app, Database(migrated_database), Settings()))

    assert ["a", "b"] == sorted(shown)
    assert "c" == shown["c"].name


def test_the_gauges_count_so_many_and_no_more(migrated_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gauges, "MOST", 2)
    store = beat(migrated_database)
    for name in "abc":
        insert(store, name, next_run_at=datetime(2026, 1, 1, tzinfo=timezone.utc))
    store.database.execute("update pgbeat.periodic_task set planned_revision = revision")

    reading = Gauges(store.database).read()

    assert reading is not None
    assert 2 == reading.due


def test_an_import_names_so_many_faults_and_counts_the_others(door: PgBeat) -> None:
    lines = [json.dumps({"name": f"row-{number}", "task": ""}) for number in range(importing.MOST_SHOWN + 3)]

    with (
        Importer(AdminQueries(door.database), Settings()) as importer,
        pytest.raises(InvalidPeriodicTask, match="and 3 more") as refused,
    ):
        list(importer.compare(lines))

    assert importing.MOST_SHOWN == str(refused.value).count("'row-")


def test_a_large_import_waits_in_a_file(door: PgBeat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "IN_MEMORY", 1_000)
    lines = [json.dumps({"name": f"row-{number}", "task": "app.probe"}) for number in range(100)]

    with Importer(AdminQueries(door.database), Settings()) as importer:
        assert 100 == len(list(importer.compare(lines)))
        assert isinstance(importer._records.name, int), "the number of a file"
        importer.apply()

    assert 100 == len(door.list())
