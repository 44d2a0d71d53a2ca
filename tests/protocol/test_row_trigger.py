"""What a write to a periodic task means, whoever writes it: what is planned anew, whose mark falls, who is woken."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness import ticks
from tests.harness.clock import Clock
from tests.harness.session import Session
from tests.harness.ticks import HOUR, submit

NOON = datetime(2026, 12, 7, 12, tzinfo=timezone.utc)
LATER = NOON + HOUR

DEFINITION = {
    "name": "'other'",
    "task": "'app.other'",
    "args": "'[1]'",
    "kwargs": """'{"a": 1}'""",
    "queue": "'q2'",
    "priority": "7",
    "options": """'{"expires": 60}'""",
    "sensitive": "true",
    "overlap": "'allow'",
    "catchup": "'none'",
    "catchup_window": "'1 hour'",
    "catchup_limit": "7",
    "min_gap": "'1 minute'",
    "max_run_time": "'1 minute'",
    "on_lost": "'rerun'",
    "tracking": "'send'",
    "pause_after_failures": "3",
    "lazy": "true",
}
TIMES = {
    "schedule": "'every 2h'",
    "timezone": "'Europe/Berlin'",
    "anchor": "'2026-12-01'",
    "dst": "'skip'",
    "start_at": "'2026-12-01'",
    "end_at": "'2030-12-01'",
    "max_runs": "5",
    "jitter": "'1 minute'",
    "blackout": "array['0 0 * * * PT5H']",
    "blackout_action": "'skip'",
}
DESCRIPTION = {"submitter": "'ann'", "subject": "'billing'", "managed_by": "'api'", "pause_reason": "'none yet'"}


@pytest.fixture
def clock(database_clock: Clock) -> Clock:
    database_clock.stand_at(NOON)
    return database_clock


@pytest.fixture
def session(migrated_database: str, clock: Clock) -> Session:
    return Session(migrated_database)


def planned(store: BeatQueries, next_run_at: datetime | None = LATER, problem: str | None = None) -> None:
    """Plan all rows that wait for it, as a beat does, in Tokyo."""
    store.plan([ticks.planned(row, next_run_at, problem) for row in store.unplanned(100)], "Asia/Tokyo")


def marked(session: Session, store: BeatQueries, **columns: Any) -> dict[str, Any]:
    """Make a row that is due now and marked by the store's beat."""
    session.insert("a", **{"schedule": "every 1h", "next_run_at": NOON, **columns})
    (due,) = store.mark(10)
    assert due.name == "a"
    return session.task("a")


def update(session: Session, assignments: str) -> dict[str, Any]:
    return session.row(f"update pgbeat.periodic_task set {assignments} returning *")


def waits_for_a_plan(row: dict[str, Any]) -> bool:
    return row["next_run_at"] is None and row["planned_revision"] != row["revision"]


def test_an_inserted_row_waits_for_its_plan_and_wakes_the_beats(session: Session) -> None:
    assert session.notified_by(lambda: session.insert("a", schedule="every 1h"))

    row = session.task("a")
    assert waits_for_a_plan(row)
    assert (True, "sql", NOON, NOON) == (row["enabled"], row["managed_by"], row["created_at"], row["updated_at"])


def test_an_inserted_row_with_a_next_run_keeps_it(session: Session, store: BeatQueries) -> None:
    row = session.insert("a", schedule="every 1h", next_run_at=LATER)

    assert row["next_run_at"] == LATER
    assert store.unplanned(10) == []


def test_an_inserted_row_without_a_schedule_has_nothing_to_plan(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule=None)

    assert store.unplanned(10) == []


def test_an_insert_cannot_set_a_mark_or_a_plan(session: Session) -> None:
    row = session.insert("a", schedule="every 1h", marked_by="me", marked_at=NOON, planned_for=LATER, problem="none")

    assert [row[column] for column in ("marked_by", "marked_at", "planned_for", "problem")] == [None] * 4


@pytest.mark.parametrize(("column", "value"), DEFINITION.items())
def test_a_change_of_what_is_sent_takes_the_mark_off_and_leaves_the_next_run(
    session: Session, store: BeatQueries, column: str, value: str
) -> None:
    before = marked(session, store)

    row = update(session, f"{column} = {value}")

    assert (None, None) == (row["marked_by"], row["marked_at"])
    assert before["next_run_at"] == row["next_run_at"]
    assert before["revision"] + 1 == row["revision"] == row["planned_revision"]


@pytest.mark.parametrize(("column", "value"), TIMES.items())
def test_a_change_of_the_times_takes_the_mark_off_and_plans_anew_from_now(
    session: Session, store: BeatQueries, clock: Clock, column: str, value: str
) -> None:
    before = marked(session, store)
    clock.advance(timedelta(minutes=5))

    row = update(session, f"{column} = {value}")

    assert row["marked_by"] is None
    assert waits_for_a_plan(row)
    assert row["planned_from"] == NOON + timedelta(minutes=5)
    assert before["last_run_at"] == row["last_run_at"]


@pytest.mark.parametrize(("column", "value"), DESCRIPTION.items())
def test_a_change_of_the_description_does_neither_and_wakes_no_beat(
    session: Session, store: BeatQueries, clock: Clock, column: str, value: str
) -> None:
    before = marked(session, store)
    clock.advance(timedelta(minutes=5))

    assert not session.notified_by(lambda: update(session, f"{column} = {value}"))

    row = session.task("a")
    assert (before["marked_at"], before["revision"]) == (row["marked_at"], row["revision"])
    assert row["updated_at"] == NOON + timedelta(minutes=5)


def test_a_row_is_not_renamed_while_a_job_that_knows_it_by_its_name_is_not_final(session: Session) -> None:
    session.insert("a", schedule="every 1h")
    job = session.value("select pgbeat.trigger('a')")

    error = session.refusal("update pgbeat.periodic_task set name = 'b'")

    assert error.pgcode == "55006"
    assert job in str(error)
    session.rows("delete from pgbeat.active_job")
    assert update(session, "name = 'b'")["name"] == "b"


def test_a_submit_under_way_for_an_edited_row_changes_nothing(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)
    due = store.mark(10)

    update(session, "args = '[1]'")

    assert submit(store, due) == {}
    assert session.rows("select * from pgbeat.job") == []
    assert session.task("a")["next_run_at"] == NOON


def test_a_submit_under_way_for_a_row_that_is_not_edited_goes_through(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)
    due = store.mark(10)

    update(session, "subject = 'billing'")

    assert submit(store, due) == {"a": True}
    assert session.task("a")["next_run_at"] == LATER


def test_an_update_to_equal_values_changes_nothing(session: Session, store: BeatQueries, clock: Clock) -> None:
    before = marked(session, store)
    clock.advance(timedelta(minutes=5))

    assert not session.notified_by(
        lambda: update(session, "schedule = schedule, args = '[]', next_run_at = next_run_at, enabled = true")
    )

    assert before == session.task("a")


def test_a_new_schedule_starts_its_own_grid_and_other_edits_leave_it(
    session: Session, store: BeatQueries, clock: Clock
) -> None:
    session.insert("a", schedule="every 7m")
    clock.advance(timedelta(minutes=5))

    update(session, "args = '[1]'")
    update(session, "enabled = false")
    update(session, "enabled = true")
    assert session.task("a")["schedule_set_at"] == NOON

    assert update(session, "schedule = 'every 9m'")["schedule_set_at"] == NOON + timedelta(minutes=5)


def test_an_edit_of_a_row_that_waits_for_its_plan_leaves_it_waiting(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h")
    (read,) = store.unplanned(10)

    update(session, "args = '[1]'")
    store.plan([ticks.planned(read, LATER)], "UTC")

    assert waits_for_a_plan(session.task("a"))


def test_the_plan_of_a_beat_passes_without_being_taken_for_an_edit(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h")

    planned(store)

    row = session.task("a")
    assert (LATER, LATER, "Asia/Tokyo") == (row["next_run_at"], row["planned_for"], row["timezone"])
    assert row["revision"] == row["planned_revision"] == 1


def test_the_submit_of_a_beat_passes_without_being_taken_for_an_edit(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)

    assert submit(store, store.mark(10)) == {"a": True}

    row = session.task("a")
    assert (LATER, LATER, NOON, 1) == (row["next_run_at"], row["planned_for"], row["last_run_at"], row["run_count"])
    assert row["revision"] == row["planned_revision"] == 1


def test_a_write_that_also_moves_last_run_at_is_validated_all_the_same(session: Session) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)

    error = session.refusal("update pgbeat.periodic_task set last_run_at = now(), schedule = '0 25 * * *'")

    assert error.pgcode == "22023"


def test_a_next_run_set_by_sql_is_honoured_and_is_its_own_nominal_instant(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h")
    planned(store)

    assert session.notified_by(lambda: update(session, "next_run_at = pgbeat.now()"))

    row = session.task("a")
    assert (NOON, None) == (row["next_run_at"], row["planned_for"])
    assert store.unplanned(10) == []
    assert [due.name for due in store.mark(10)] == ["a"]


def test_a_next_run_set_by_sql_takes_the_mark_off(session: Session, store: BeatQueries) -> None:
    marked(session, store)

    assert update(session, "next_run_at = '2030-01-01'")["marked_by"] is None


def test_a_next_run_set_by_sql_stands_beside_a_new_schedule(session: Session, store: BeatQueries) -> None:
    marked(session, store)

    row = update(session, "schedule = 'every 2h', next_run_at = '2030-01-01'")

    assert row["next_run_at"] == datetime(2030, 1, 1, tzinfo=timezone.utc)
    assert store.unplanned(10) == []


def test_a_next_run_cleared_by_sql_is_planned_from_now(session: Session, store: BeatQueries, clock: Clock) -> None:
    marked(session, store)
    clock.advance(HOUR)

    row = update(session, "next_run_at = null")

    assert waits_for_a_plan(row)
    assert [(LATER, None)] == [(one.counts_after, one.planned_for) for one in store.unplanned(10)]
    assert (1, None) == (row["revision"], row["marked_by"])
    assert store.mark(10) == []


def test_a_next_run_cleared_by_sql_is_no_change_of_the_definition(session: Session) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)

    assert 1 == update(session, "next_run_at = null")["revision"]


def test_a_row_without_a_schedule_stays_without_a_time(session: Session, store: BeatQueries) -> None:
    session.insert("a", next_run_at=NOON)

    update(session, "next_run_at = null")

    assert store.unplanned(10) == []
    assert store.mark(10) == []


def test_a_row_that_a_beat_has_ended_stays_ended(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON, max_runs=1)
    assert {"a": True} == submit(store, store.mark(10))

    assert store.unplanned(10) == []
    update(session, "next_run_at = null")
    assert store.unplanned(10) == []


def test_a_next_run_cleared_together_with_a_new_schedule_is_planned(session: Session) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)

    assert waits_for_a_plan(update(session, "schedule = 'every 2h', next_run_at = null"))


def test_a_row_whose_schedule_is_taken_away_has_no_next_run(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)

    assert update(session, "schedule = null")["next_run_at"] is None
    assert store.unplanned(10) == []


def test_a_pause_takes_the_mark_off_and_records_the_user(session: Session, store: BeatQueries) -> None:
    marked(session, store)

    row = update(session, "enabled = false")

    assert row["marked_by"] is None
    assert row["paused_by"] == session.value("select session_user::text")
    assert row["next_run_at"] == NOON
    assert store.mark(10) == []


def test_a_pause_may_name_another_user(session: Session) -> None:
    session.insert("a", schedule="every 1h")

    assert update(session, "enabled = false, paused_by = 'ann'")["paused_by"] == "ann"


def test_a_resumed_row_whose_next_run_has_passed_is_planned_from_now(session: Session, clock: Clock) -> None:
    session.insert("a", schedule="every 1s", next_run_at=NOON)
    update(session, "enabled = false, pause_reason = 'flood', paused_until = '2030-01-01'")
    clock.advance(HOUR)

    assert session.notified_by(lambda: update(session, "enabled = true"))

    row = session.task("a")
    assert waits_for_a_plan(row)
    assert row["planned_from"] == LATER
    assert [row[column] for column in ("pause_reason", "paused_by", "paused_until")] == [None] * 3


def test_a_resumed_row_whose_next_run_lies_ahead_keeps_it(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", next_run_at=LATER)
    update(session, "enabled = false")

    assert update(session, "enabled = true")["next_run_at"] == LATER
    assert store.unplanned(10) == []


def test_a_pause_that_has_run_out_was_over_at_its_time_and_not_when_a_beat_saw_it(
    session: Session, store: BeatQueries, clock: Clock
) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)
    update(session, "enabled = false, paused_until = '2026-12-07 13:00Z'")
    clock.stand_at(LATER + timedelta(seconds=1))

    assert store.resume_due() == ["a"]

    row = session.task("a")
    assert waits_for_a_plan(row)
    assert row["planned_from"] == LATER - timedelta(microseconds=1)  # an occurrence at 13:00 is yet to come


def test_a_pause_until_a_time_that_had_passed_was_one_until_now(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)
    update(session, "enabled = false, paused_until = '2026-12-01'")

    assert store.resume_due() == ["a"]

    assert session.task("a")["planned_from"] == NOON


def test_a_row_that_was_edited_before_or_in_its_pause_is_planned_from_its_end(session: Session, clock: Clock) -> None:
    session.insert("a", schedule="every 1h")
    update(session, "enabled = false")
    update(session, "schedule = 'every 2h'")
    clock.advance(HOUR)

    row = update(session, "enabled = true")

    assert waits_for_a_plan(row)
    assert row["planned_from"] == LATER


def test_a_row_resumed_with_a_next_run_of_its_own_keeps_that(session: Session, clock: Clock) -> None:
    session.insert("a", schedule="every 1h", next_run_at=NOON)
    update(session, "enabled = false")
    clock.advance(HOUR)

    row = update(session, "enabled = true, next_run_at = pgbeat.now()")

    assert row["next_run_at"] == LATER


def test_every_change_of_the_definition_gives_a_row_with_a_problem_another_chance(
    session: Session, store: BeatQueries
) -> None:
    session.insert("a", schedule="every 1h")
    planned(store, None, "no such day")
    assert store.unplanned(10) == []

    row = update(session, "args = '[1]'")

    assert row["problem"] is None
    assert waits_for_a_plan(row)


def test_a_change_of_the_description_leaves_the_problem(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h")
    planned(store, None, "no such day")

    assert update(session, "subject = 'billing'")["problem"] == "no such day"


def test_the_zone_that_a_beat_filled_in_is_known_from_one_that_the_author_gave(
    session: Session, store: BeatQueries
) -> None:
    session.insert("a", schedule="@daily")
    planned(store)
    row = session.task("a")
    assert ("Asia/Tokyo", None) == (row["timezone"], row["declared_timezone"])

    row = update(session, "timezone = 'Europe/Berlin'")
    assert ("Europe/Berlin", "Europe/Berlin") == (row["timezone"], row["declared_timezone"])


def test_a_rolled_back_write_leaves_no_row_and_wakes_no_beat(session: Session) -> None:
    def write_and_think_better_of_it() -> None:
        session.rows("begin")
        session.insert("a", schedule="every 1h")
        session.rows("rollback")

    assert not session.notified_by(write_and_think_better_of_it)
    assert session.rows("select * from pgbeat.periodic_task") == []
