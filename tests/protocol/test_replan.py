"""Rows that are to be planned again: who is meant, what it does to a row, what people read before and after it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat import PgBeat, planning
from celery_pgbeat.errors import InvalidSchedule, UnknownPeriodicTask
from celery_pgbeat.planning import Rules
from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness import ticks
from tests.harness.clock import Clock
from tests.harness.session import Session
from tests.harness.shell import Run
from tests.harness.ticks import HOUR, row_of, submit

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
NINE = datetime(2026, 12, 8, 9, tzinfo=timezone.utc)
OLD = NINE + HOUR  # nine o'clock by the old tables
RULES = Rules(timezone="UTC", on_time=timedelta(seconds=32), lease=timedelta(seconds=15))


@pytest.fixture
def clock(database_clock: Clock) -> Clock:
    database_clock.stand_at(NOON)
    return database_clock


@pytest.fixture
def session(migrated_database: str, clock: Clock) -> Session:
    return Session(migrated_database)


@pytest.fixture
def store(migrated_database: str, clock: Clock) -> BeatQueries:
    return ticks.beat(migrated_database)


def planned(session: Session, store: BeatQueries, name: str = "a", at: datetime = OLD, **columns: Any) -> None:
    """Insert a row that a beat has planned by the old tables."""
    session.insert(name, **{"schedule": "0 9 * * *", "timezone": "UTC", **columns})
    store.plan([ticks.planned(row, at) for row in store.unplanned(100) if row.name == name], "UTC")
    assert at == session.task(name)["next_run_at"]


def plan(store: BeatQueries) -> list[str]:
    """Plan as a beat with the new tables does."""
    return [name for name, _, _ in store.plan([planning.plan(row, RULES) for row in store.unplanned(100)], "UTC")]


def replan(session: Session, names: list[str] | None = None, zone: str | None = None) -> list[str]:
    return [row["name"] for row in session.rows("select pgbeat.replan(%s, %s) as name", names, zone)]


def test_a_row_is_planned_again_and_its_definition_is_unchanged(session: Session, store: BeatQueries) -> None:
    planned(session, store)

    assert session.notified_by(lambda: replan(session, ["a"]))
    asked = session.task("a")
    assert (OLD, OLD) == (asked["next_run_at"], asked["planned_for"]), "it keeps its next run until a beat has planned"
    assert ["a"] == plan(store)

    row = session.task("a")
    assert (NINE, NINE, 1) == (row["next_run_at"], row["planned_for"], row["revision"])
    assert [] == store.unplanned(10)


def test_a_row_that_has_no_further_run_by_the_new_tables_ends_and_is_no_persons_change(
    session: Session, store: BeatQueries
) -> None:
    planned(session, store, end_at=NINE - HOUR)
    replan(session)

    assert ["a"] == plan(store)
    assert session.task("a")["next_run_at"] is None
    assert [{"action": "created"}] == session.rows("select action from pgbeat.change")


def test_to_ask_twice_is_to_ask_once(session: Session, store: BeatQueries) -> None:
    planned(session, store)

    assert ["a"] == replan(session)
    assert [] == replan(session)
    assert ["a"] == plan(store)
    assert ["a"] == replan(session)
    plan(store)
    assert NINE == session.task("a")["next_run_at"]


@pytest.mark.parametrize("statement", ["select pgbeat.replan()", "update pgbeat.periodic_task set next_run_at = null"])
def test_what_was_planned_ahead_is_not_sent(session: Session, store: BeatQueries, statement: str) -> None:
    ticks.plan_ahead(store, "a")

    session.rows(statement)

    store.mark_or_submit(10, RULES, "full", (), 0)
    assert [] == ticks.jobs(store)
    plan(store)
    assert None is row_of(store, "a")["planned_ahead"]


def test_a_decision_under_way_by_the_old_tables_writes_nothing(
    session: Session, store: BeatQueries, clock: Clock
) -> None:
    planned(session, store)
    clock.stand_at(OLD)
    rows = store.mark(10)

    replan(session, ["a"])

    assert {} == submit(store, rows)
    assert [] == ticks.jobs(store)
    plan(store)
    assert OLD == session.task("a")["next_run_at"], "it is due, and is sent as it was planned"
    assert {"a": True} == submit(store, store.mark(10))


def test_a_run_that_was_decided_while_a_beat_planned_it_again_stays_decided(
    session: Session, store: BeatQueries, clock: Clock
) -> None:
    planned(session, store)
    replan(session, ["a"])
    read = store.unplanned(10)
    clock.stand_at(OLD)
    assert {"a": True} == submit(store, store.mark(10))

    assert [] == store.plan([planning.plan(row, RULES) for row in read], "UTC")
    assert OLD + HOUR == session.task("a")["next_run_at"]


def test_a_paused_row_is_planned_again_when_it_is_resumed(session: Session, store: BeatQueries) -> None:
    planned(session, store)
    session.rows("select pgbeat.pause('a')")

    assert ["a"] == replan(session)
    assert [] == plan(store)
    session.rows("select pgbeat.resume('a')")

    assert ["a"] == plan(store)
    assert NINE == session.task("a")["next_run_at"]


def test_what_has_nothing_to_plan_is_left_out(session: Session, store: BeatQueries) -> None:
    planned(session, store, "finished", max_runs=1)
    session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now()")
    assert {"finished": True} == submit(store, store.mark(10))
    session.insert("by-hand", schedule="0 9 * * *", next_run_at=OLD)
    session.insert("on-demand", schedule=None)
    session.insert("new", schedule="0 9 * * *")

    assert [] == replan(session)
    assert OLD == session.task("by-hand")["next_run_at"]


def test_a_row_that_could_not_be_planned_is_tried_again(session: Session, store: BeatQueries, clock: Clock) -> None:
    session.insert("a", schedule="0 9 * * *", timezone="UTC")
    store.plan([ticks.planned(row, None, "no such zone") for row in store.unplanned(10)], "UTC")
    clock.advance(72 * HOUR)

    assert ["a"] == replan(session)
    assert ["a"] == plan(store)

    row = session.task("a")
    assert (None, NINE + 72 * HOUR) == (row["problem"], row["next_run_at"]), "from now, never an old one"


def test_a_row_that_cannot_be_planned_again_keeps_its_next_run_for_when_it_can(
    session: Session, store: BeatQueries
) -> None:
    planned(session, store)
    replan(session)
    store.plan([ticks.planned(row, None, "no such zone") for row in store.unplanned(10)], "UTC")
    assert ("no such zone", OLD) == (session.task("a")["problem"], session.task("a")["next_run_at"])

    assert ["a"] == replan(session)
    plan(store)
    assert (None, NINE) == (session.task("a")["problem"], session.task("a")["next_run_at"])


ZONE = "America/Asuncion"
NAMES_IT: dict[str, dict[str, Any]] = {
    "own": {"timezone": ZONE},
    "cron": {"schedule": f"CRON_TZ={ZONE} 0 9 * * *"},
    "calendar": {"schedule": f"*-*-* 09:00 {ZONE}"},
    "rrule": {"schedule": f"DTSTART;TZID={ZONE}:20270101T090000\nRRULE:FREQ=DAILY"},
    "window": {"blackout": [f"CRON_TZ={ZONE} 0 1 * * * PT3H"]},
    "named": {"blackout": ["window: morning"]},
}


def test_a_zone_means_all_rows_that_name_it(session: Session, store: BeatQueries) -> None:
    session.rows("insert into pgbeat.blackout values ('morning', array['0 1 * * * PT3H'], %s)", ZONE)
    for name, columns in {**NAMES_IT, "other": {"timezone": "Europe/Berlin"}}.items():
        planned(session, store, name, **columns)

    assert sorted(NAMES_IT) == replan(session, None, ZONE.lower())
    assert ["other"] == replan(session)


def test_python_has_the_same(session: Session, store: BeatQueries, beat: PgBeat) -> None:
    planned(session, store)
    planned(session, store, "b")

    assert ["a"] == beat.replan(["a"], zone="UTC")
    assert ["b"] == beat.replan()
    with pytest.raises(UnknownPeriodicTask, match="No periodic task is named 'aa'"):
        beat.replan(["aa"])
    with pytest.raises(InvalidSchedule, match="did you mean 'America/Asuncion'"):
        beat.replan(zone="America/Asunción")
    with pytest.raises(TypeError, match="names is 'a': give a list of names"):
        beat.replan("a")
    assert "No periodic task is named 'aa'" in str(session.refusal("select pgbeat.replan(array['aa'])"))


def test_what_people_read_says_that_the_next_run_is_not_the_one_of_the_schedule(
    session: Session, store: BeatQueries, beat: PgBeat, run: Run
) -> None:
    planned(session, store)
    way_out = "by the time zone tables here that is 2026-12-08 09:00:00Z: `celery-pgbeat replan a` moves it"
    note = "by the time zone tables here it is at another time: 2026-12-08 09:00:00Z; `replan` moves it"
    assert beat.explain("a").endswith(way_out)
    assert note == beat.upcoming("a", limit=1)[0].note
    assert "by the time zone tables here" in run("show", "a").output
    found = json.loads(run("doctor", "--json").output)["findings"]
    assert ["stored runs"] == [one["check"] for one in found if "replan --all" in one["mend"]]

    replan(session)
    plan(store)

    assert "tables" not in beat.explain("a")
    assert None is beat.upcoming("a", limit=1)[0].note
    assert "tables" not in run("show", "a").output
    assert not [one for one in json.loads(run("doctor", "--json").output)["findings"] if "replan" in one["mend"]]


def test_the_doctor_finds_what_was_planned_ahead_by_other_tables(
    session: Session, store: BeatQueries, run: Run
) -> None:
    planned(session, store, at=NINE)
    session.rows("set session_replication_role = replica")
    session.rows("update pgbeat.periodic_task set planned_ahead = array[%s::timestamptz]", OLD + 24 * HOUR)
    session.rows("reset session_replication_role")

    assert "replan --all" in run("doctor").output


def test_the_shell_asks_with_the_number_and_says_what_moved(session: Session, store: BeatQueries, run: Run) -> None:
    planned(session, store)
    planned(session, store, "b")

    assert "This would plan 'a', 'b' again: add --yes" in run("replan", "--all").output
    assert [] == store.unplanned(10)
    assert 2 == run("replan").exit_code
    nothing = run("replan", "--zone", "Asia/Tokyo", "--yes")
    assert (0, "Nothing to plan again") == (nothing.exit_code, nothing.output[:21])


def test_the_shell_says_when_no_beat_has_planned(
    session: Session, store: BeatQueries, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("celery_pgbeat.cli.replan.WAIT", 0.0)
    planned(session, store)

    done = run("replan", "a")

    assert (1, "") == (done.exit_code, done.stdout)
    assert done.stderr.startswith("Error: 1 row not planned yet: is a beat running?")
    assert OLD == session.task("a")["next_run_at"]
