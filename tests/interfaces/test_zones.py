"""A row without a zone of its author has none until a beat plans it and writes its app's there, whoever wrote it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import schedule as celery_schedule
from click.testing import CliRunner

from celery_pgbeat import PgBeat, cron, every
from celery_pgbeat.cli import main
from celery_pgbeat.errors import InvalidPeriodicTask, UnknownTimezone
from tests.harness import ticks
from tests.harness.session import Session
from tests.harness.shell import Run

BERLIN = "Europe/Berlin"
NINE = "0 9 * * *"
NAIVE = datetime(2026, 1, 1)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Celery:
    """The Celery app of Berlin, which the shell finds as `shop_of_berlin:app`."""
    made = Celery("shop", set_as_current=False)
    made.conf.timezone = BERLIN
    module = ModuleType("shop_of_berlin")
    module.app = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop_of_berlin", module)
    return made


@pytest.fixture
def without_app(migrated_database: str) -> Iterator[PgBeat]:
    made = PgBeat(url=migrated_database)
    yield made
    made.close()


@pytest.fixture
def with_app(app: Celery, migrated_database: str) -> Iterator[PgBeat]:
    made = PgBeat(app, url=migrated_database)
    yield made
    made.close()


@pytest.fixture
def run_with_app(app: Celery, migrated_database: str) -> Run:
    app.conf.pgbeat_url = migrated_database
    return lambda *words, **given: CliRunner().invoke(
        main, ["--url", migrated_database, "-A", "shop_of_berlin:app", *words], **given
    )


def plan(url: str, session: Session, zone: str = BERLIN) -> None:
    """Have a beat of an app in that zone plan the rows."""
    store = ticks.beat(url)
    due = session.value("select pgbeat.now() + interval '1 hour'")
    store.plan([ticks.planned(row, due) for row in store.unplanned(100)], zone)


WAYS: dict[str, Callable[..., Any]] = {
    "SQL": lambda session, **_: session.rows("select pgbeat.schedule('x', 't', '0 9 * * *')"),
    "insert": lambda session, **_: session.insert("x", schedule=NINE),
    "Python without an app": lambda without_app, **_: without_app.schedule("x", "t", NINE),
    "Python with an app": lambda with_app, **_: with_app.schedule("x", "t", cron(NINE)),
    "many": lambda with_app, **_: with_app.schedule_many([{"name": "x", "task": "t", "schedule": NINE}]),
    "shell without an app": lambda run, **_: run("add", "x", "--task", "t", "--schedule", NINE),
    "shell with an app": lambda run_with_app, **_: run_with_app("add", "x", "--task", "t", "--schedule", NINE),
    "import": lambda run, **_: run("import", "-", input='{"name": "x", "task": "t", "schedule": "0 9 * * *"}'),
}


@pytest.fixture
def ways(session: Session, without_app: PgBeat, with_app: PgBeat, run: Run, run_with_app: Run) -> dict[str, Any]:
    return {
        "session": session,
        "without_app": without_app,
        "with_app": with_app,
        "run": run,
        "run_with_app": run_with_app,
    }


@pytest.mark.parametrize("way", WAYS)
def test_a_row_without_a_zone_keeps_none_until_a_beat_fills_in_its_app_s_and_a_repetition_leaves_it(
    way: str, ways: dict[str, Any], session: Session, migrated_database: str
) -> None:
    WAYS[way](**ways)
    assert session.task("x")["timezone"] is None

    plan(migrated_database, session)
    filled_in = session.task("x")
    if way != "insert":
        WAYS[way](**ways)

    assert (BERLIN, None) == (filled_in["timezone"], filled_in["declared_timezone"])
    assert filled_in == session.task("x")


def test_the_zone_that_a_beat_filled_in_stays_when_something_else_is_declared_anew(
    without_app: PgBeat, session: Session, migrated_database: str
) -> None:
    without_app.schedule("x", "t", NINE)
    plan(migrated_database, session)

    row = without_app.schedule("x", "t", NINE, queue="slow")

    assert (BERLIN, "slow", session.task("x")["next_run_at"]) == (row.timezone, row.queue, row.next_run_at)
    assert row.next_run_at is not None


def test_a_zone_that_is_given_and_then_left_out_is_the_app_s_again(without_app: PgBeat, session: Session) -> None:
    without_app.schedule("x", "t", NINE, timezone="Asia/Tokyo")
    assert "Asia/Tokyo" == session.task("x")["declared_timezone"]

    assert without_app.schedule("x", "t", NINE).timezone is None
    assert "Asia/Tokyo" == without_app.schedule("x", "t", cron(NINE, timezone="Asia/Tokyo")).timezone


def test_a_zone_that_a_beat_filled_in_and_an_author_then_gives_is_the_author_s(
    without_app: PgBeat, session: Session, migrated_database: str
) -> None:
    without_app.schedule("x", "t", NINE)
    plan(migrated_database, session)
    next_run_at = session.task("x")["next_run_at"]

    without_app.schedule("x", "t", NINE, timezone=BERLIN)

    row = session.task("x")
    assert (BERLIN, BERLIN, next_run_at) == (row["timezone"], row["declared_timezone"], row["next_run_at"])


@pytest.mark.parametrize("column", ["start_at", "end_at", "anchor"])
def test_an_instant_without_an_offset_needs_a_zone_or_an_app(
    without_app: PgBeat, with_app: PgBeat, column: Any
) -> None:
    with pytest.raises(InvalidPeriodicTask, match=f"{column} is 2026-01-01T00:00:00, without an offset, and the row"):
        without_app.schedule("x", "t", NINE, **{column: NAIVE})

    read = with_app.schedule("x", "t", NINE, **{column: NAIVE})
    assert datetime(2025, 12, 31, 23, tzinfo=timezone.utc) == getattr(read, column)
    given = without_app.schedule("y", "t", NINE, timezone="Asia/Tokyo", **{column: NAIVE})
    assert datetime(2025, 12, 31, 15, tzinfo=timezone.utc) == getattr(given, column)


def test_a_relative_interval_counts_from_midnight_of_a_zone_that_is_known(
    without_app: PgBeat, with_app: PgBeat
) -> None:
    relative = celery_schedule(timedelta(hours=6), relative=True)
    with pytest.raises(InvalidPeriodicTask, match="the row has no timezone"):
        without_app.schedule("x", "t", relative)

    assert datetime(2023, 12, 31, 23, tzinfo=timezone.utc) == with_app.schedule("x", "t", relative).anchor


def test_the_coming_runs_of_a_row_without_a_zone_are_those_of_the_app_and_unknown_without_one(
    without_app: PgBeat, with_app: PgBeat, session: Session, migrated_database: str
) -> None:
    without_app.schedule("x", "t", NINE)

    with pytest.raises(UnknownTimezone, match="'x' has no timezone yet: the first beat that plans it writes its app's"):
        without_app.upcoming("x")
    (run,) = with_app.upcoming("x", 1)
    assert (9, 0) == (run.next_run_at.astimezone(ZoneInfo(BERLIN)).hour, run.next_run_at.minute)
    plan(migrated_database, session)
    assert 2 == len(without_app.upcoming("x", 2))


@pytest.mark.parametrize("schedule", [every("5m"), "CRON_TZ=Asia/Tokyo 0 9 * * *", "Mon 09:00 Asia/Tokyo"])
def test_what_needs_no_zone_of_the_row_is_computed_without_one(without_app: PgBeat, schedule: Any) -> None:
    without_app.schedule("x", "t", schedule)

    assert 2 == len(without_app.upcoming("x", 2))
    without_app.schedule("x", "t", schedule, blackout="cron: 0 3 * * * PT1H")
    if "every" in str(schedule):
        with pytest.raises(UnknownTimezone):
            without_app.upcoming("x")


def test_changing_a_zone_to_none_leaves_it_to_the_beats(with_app: PgBeat) -> None:
    with_app.schedule("x", "t", NINE, timezone="Asia/Tokyo")

    assert with_app.update("x", timezone=None).timezone is None


# --- what the shell says


def test_adding_a_row_prints_the_zone_that_it_will_have_and_its_next_run(run: Run, run_with_app: Run) -> None:
    alone = run("add", "x", "--task", "t", "--schedule", NINE)
    with_app = run_with_app("add", "y", "--task", "t", "--schedule", NINE, "--overlap", "allow")

    assert (
        "Created 'x'.\n"
        "The schedule: at 09:00\n"
        "The timezone: that of the app; the first beat fills it in.\n"
        "By default: overlap skip, catchup latest, on_lost give_up, tracking full\n"
        "The next run: known once the first beat has filled in the app's zone.\n"
    ) == alone.stdout
    first, schedule, zone, defaults, next_run = with_app.stdout.splitlines()
    assert ("Created 'y'.", "The schedule: at 09:00") == (first, schedule)
    assert "The timezone: Europe/Berlin, that of the app; the first beat fills it in." == zone
    assert "By default: catchup latest, on_lost give_up, tracking full" == defaults
    assert next_run.endswith("(Europe/Berlin)")
    assert " 09:00:00+0" in next_run


def test_adding_a_row_again_prints_the_zone_that_a_beat_has_filled_in(
    run: Run, session: Session, migrated_database: str
) -> None:
    run("add", "x", "--task", "t", "--schedule", NINE)
    plan(migrated_database, session)

    shown = run("add", "x", "--task", "t", "--schedule", NINE, "--queue", "slow").stdout

    assert "The timezone: Europe/Berlin, which a beat has filled in.\n" in shown
    assert "The next run: " in shown


def test_adding_a_row_without_a_run_prints_why(run: Run, session: Session) -> None:
    assert (
        "The next run: none, because it has no schedule; `trigger` starts it.\n"
        in run("add", "x", "--task", "t").stdout
    )
    session.rows("update pgbeat.periodic_task set enabled = false")

    paused = run("add", "x", "--task", "t", "--schedule", "every 1h", "--timezone", "UTC").stdout

    assert "The next run: none, paused.\n" in paused


def test_the_json_of_an_added_row_has_its_zone_and_its_next_run(run: Run, run_with_app: Run) -> None:
    unknown = json.loads(run("add", "x", "--task", "t", "--schedule", NINE, "--json").stdout)
    known = json.loads(run_with_app("add", "x", "--task", "t", "--schedule", NINE, "--json").stdout)

    assert (None, None) == (unknown["timezone"], unknown["next_run_at"])
    assert BERLIN == known["timezone"]
    assert 9 == datetime.fromisoformat(known["next_run_at"]).astimezone(ZoneInfo(BERLIN)).hour


def test_the_coming_runs_of_a_row_without_a_zone_are_said_to_be_in_the_app_s(run: Run, run_with_app: Run) -> None:
    run("add", "x", "--task", "t", "--schedule", NINE)

    unknown = run("upcoming", "x")
    as_json = json.loads(run("upcoming", "x", "--json").stdout)

    said = "No run is known yet: they are in the app's zone, filled in by the first beat. With -A they are shown.\n"
    assert (0, True, False) == (unknown.exit_code, said in unknown.stdout, "UTC" in unknown.stdout)
    assert (None, []) == (as_json["timezone"], as_json["runs"])
    assert "timezone     Europe/Berlin" in run_with_app("upcoming", "x").stdout
