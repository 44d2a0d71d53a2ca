"""Blackout windows in the table: who refers to which, what a change of one means, what is postponed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from celery_pgbeat.planning import Postponed
from celery_pgbeat.postgres.beat_queries import BeatQueries
from tests.harness.session import Session, reason
from tests.harness.ticks import HOUR, jobs, make_due, planned, row_of, submit

NIGHT = ["0 0 * * * PT5H"]


def plan_all(store: BeatQueries) -> None:
    rows = store.unplanned(100)
    store.plan([planned(row, row.planned_from + HOUR) for row in rows], "UTC")


def test_planning_reads_the_windows_and_those_they_refer_to(session: Session, store: BeatQueries) -> None:
    session.rows("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], 'Europe/Berlin')")
    session.rows("insert into pgbeat.blackout values ('weekend', array['0 0 * * sat P2D', 'daily PT1H'], null)")
    session.insert(
        "a",
        schedule="every 1h",
        jitter="90 s",
        blackout=["window: night;\nwindow:weekend", "RRULE:FREQ=DAILY;BYHOUR=3 PT1H", " Window : nobody "],
        blackout_action="skip",
    )

    (row,) = store.unplanned(10)

    assert timedelta(seconds=90) == row.jitter
    assert (3, "skip") == (len(row.blackout or ()), row.blackout_action)
    assert {
        "night": [["0 0 * * * PT5H"], "Europe/Berlin"],
        "weekend": [["0 0 * * sat P2D", "daily PT1H"], None],
    } == row.windows


def test_a_mark_returns_the_same(session: Session, store: BeatQueries) -> None:
    session.rows("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], null)")
    make_due(store, "a", catchup_limit=7)
    session.rows("update pgbeat.periodic_task set blackout = array['window: night'], next_run_at = pgbeat.now()")

    (row,) = store.mark(10)

    assert (["window: night"], {"night": [NIGHT, None]}, 7) == (row.blackout, row.windows, row.catchup_limit)


def test_a_change_of_a_window_replans_the_rows_that_use_it_and_no_others(session: Session, store: BeatQueries) -> None:
    session.rows("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], null)")
    for name, windows in (("a", ["window: night"]), ("b", NIGHT), ("c", None)):
        session.insert(name, schedule="every 1h", blackout=windows)
    plan_all(store)

    assert session.notified_by(lambda: session.rows("update pgbeat.blackout set windows = array['daily PT6H']"))

    assert ["a"] == [row.name for row in store.unplanned(10)]
    plan_all(store)
    session.rows("update pgbeat.blackout set windows = array['daily PT6H']")
    assert [] == store.unplanned(10)


def test_a_change_of_a_window_fences_what_was_decided_with_the_old_one(session: Session, store: BeatQueries) -> None:
    session.rows("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], null)")
    make_due(store, "a")
    session.rows("update pgbeat.periodic_task set blackout = array['window: night'], next_run_at = pgbeat.now()")
    rows = store.mark(10)

    session.rows("update pgbeat.blackout set windows = array['* * * * * PT1H']")

    assert {} == submit(store, rows)
    assert [] == jobs(store)


def test_a_row_with_an_unknown_window_is_planned_once_that_is_defined(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", blackout=["window: night"])
    store.plan([planned(row, None, "there is no blackout window named 'night'") for row in store.unplanned(10)], "UTC")
    assert [] == store.unplanned(10)

    session.rows("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], null)")

    assert ["a"] == [row.name for row in store.unplanned(10)]
    assert session.task("a")["problem"] is None


@pytest.mark.parametrize("change", ["delete from pgbeat.blackout", "update pgbeat.blackout set name = 'evening'"])
def test_a_window_in_use_is_neither_removed_nor_renamed(session: Session, change: str) -> None:
    session.rows("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], null)")
    session.insert("a", schedule="every 1h", blackout=["window: night"])

    refused = session.refusal(change)

    assert ("55006", "The blackout window 'night' is used by the periodic task 'a'.") == (
        refused.pgcode,
        reason(refused),
    )
    session.rows("update pgbeat.periodic_task set blackout = null")
    session.rows(change)


def test_a_postponed_row_comes_again_with_its_instant_and_without_a_mark(store: BeatQueries) -> None:
    make_due(store, "a")
    (row,) = store.mark(10)
    later = row.next_run_at + HOUR

    assert ["a"] == store.postpone([Postponed(row=row, planned_for=row.next_run_at, next_run_at=later)])

    stored = row_of(store, "a")
    assert (later, row.next_run_at, None, None) == (
        stored["next_run_at"],
        stored["planned_for"],
        stored["marked_by"],
        stored["last_run_at"],
    )
    assert stored["revision"] == stored["planned_revision"]
    assert [] == store.unplanned(10)


def test_a_row_is_postponed_again_and_again_without_a_new_revision(store: BeatQueries) -> None:
    make_due(store, "a")
    before = row_of(store, "a")
    for hours in (3, 2, 1):
        (row,) = store.mark(10)
        next_run_at = before["next_run_at"] - hours * HOUR
        store.postpone([Postponed(row=row, planned_for=before["next_run_at"], next_run_at=next_run_at)])

        after = row_of(store, "a")
        assert (next_run_at, before["next_run_at"]) == (after["next_run_at"], after["planned_for"])
        assert (None, 1, before["updated_at"]) == (after["marked_by"], after["revision"], after["updated_at"])


def test_a_postponement_of_a_lost_mark_changes_nothing(session: Session, store: BeatQueries) -> None:
    make_due(store, "a")
    (row,) = store.mark(10)
    session.rows("update pgbeat.periodic_task set args = '[1]'")
    before = row_of(store, "a")

    assert [] == store.postpone([Postponed(row=row, planned_for=row.next_run_at, next_run_at=row.next_run_at + HOUR)])

    assert before == row_of(store, "a")


def test_a_postponement_under_an_earlier_mark_of_the_same_beat_changes_nothing(
    session: Session, store: BeatQueries
) -> None:
    make_due(store, "a")
    (row,) = store.mark(10)
    session.rows("update pgbeat.periodic_task set marked_at = marked_at - interval '16 seconds'")
    assert 1 == len(store.mark(10))
    before = row_of(store, "a")

    assert [] == store.postpone([Postponed(row=row, planned_for=row.next_run_at, next_run_at=row.next_run_at + HOUR)])

    assert before == row_of(store, "a")


def test_a_job_that_a_window_held_back_is_not_too_late_when_it_is_taken_over(
    session: Session, store: BeatQueries
) -> None:
    make_due(store, "a", catchup="none")
    session.rows("update pgbeat.periodic_task set blackout = array['0 0 * * * PT5H'], next_run_at = pgbeat.now()")
    submit(store, store.mark(10))
    session.rows(
        "update pgbeat.active_job set check_at = 'epoch', "
        "scheduled_for = scheduled_for - interval '3 hours', marked_at = null"
    )

    (recovered,) = store.recover(10, timedelta(seconds=32))

    assert recovered.reason is None


@pytest.mark.parametrize("set_by_hand", [True, False])
def test_a_run_that_a_named_window_held_back_is_kept_when_the_window_changes(
    session: Session, store: BeatQueries, set_by_hand: bool
) -> None:
    session.rows("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], null)")
    session.insert("a", schedule="every 1h", blackout=["window: night"])
    plan_all(store)
    if set_by_hand:
        session.rows("update pgbeat.periodic_task set next_run_at = pgbeat.now() + interval '5 minutes'")
    row = session.task("a")

    session.rows("update pgbeat.blackout set windows = array['daily PT6H']")

    (unplanned,) = store.unplanned(10)
    assert (row["planned_for"] or row["next_run_at"]) == unplanned.held_back


def test_an_edit_of_the_row_discards_a_run_that_was_held_back(session: Session, store: BeatQueries) -> None:
    session.insert("a", schedule="every 1h", blackout=NIGHT)
    plan_all(store)

    session.rows("update pgbeat.periodic_task set blackout = array['daily PT6H']")

    (unplanned,) = store.unplanned(10)
    assert unplanned.held_back is None
