"""explain(): in one sentence, why a periodic task is, or is not, running now."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.harness.session import Session, reason
from tests.harness.situations import BEAT, JOB, NO_BEAT, NOON, Situation, ago

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
NEXT = "its next run is at 13:00:00Z"


def test_a_row_that_waits_names_its_next_run(well: Situation) -> None:
    well.plan()

    sentence = well.session.value("select pgbeat.explain('nightly')")

    assert "'nightly' is not running: its next run is at 2100-03-01 13:00:00Z." == sentence


def test_a_row_that_has_just_come_due_is_about_to_be_taken(well: Situation) -> None:
    well.plan(NOON)

    assert "not running: its run has been due since 12:00:00Z; a beat takes it within a moment." == well.explain()


def test_when_all_beats_are_dead_it_is_said_since_when(situation: Situation) -> None:
    situation.beat(ago(minutes=5))
    situation.beat(ago(minutes=3), "another")
    situation.plan(ago(minutes=2))

    assert (
        "not running: its run has been due since 11:58:00Z; no beat has been seen since 11:57:00Z."
    ) == situation.explain()


def test_a_dead_beat_is_named_before_the_run_is_due(situation: Situation) -> None:
    situation.beat(ago(minutes=3))
    situation.plan()

    assert f"not running: {NEXT}; no beat has been seen since 11:57:00Z." == situation.explain()


def test_where_no_beat_is_there_at_all_that_is_said(situation: Situation) -> None:
    situation.plan()

    assert f"not running: {NEXT}; {NO_BEAT}." == situation.explain()


def test_without_a_beat_it_says_when_the_last_one_was_stopped_or_seen(situation: Situation) -> None:
    situation.plan()
    situation.stopped_beat(ago(minutes=10))
    stopped = situation.explain()
    situation.beat(ago(minutes=9), node="web-3")

    assert f"not running: {NEXT}; no beat is running: the last one was stopped at 11:50:00Z." == stopped
    assert f"not running: {NEXT}; no beat has been seen since 11:51:00Z." == situation.explain()


def test_a_sign_of_life_from_before_the_clock_was_set_back_is_none(situation: Situation) -> None:
    situation.beat(NOON + HOUR)
    situation.plan()

    assert f"not running: {NEXT}; no beat has been seen since 13:00:00Z." == situation.explain()


def test_after_a_restart_of_the_database_the_sentence_names_the_restart(situation: Situation) -> None:
    started = situation.session.value("select date_trunc('second', pg_postmaster_start_time())")
    situation.clock.stand_at(started + 10 * SECOND)
    situation.beat(started - 60 * SECOND)
    situation.plan(started + HOUR)

    def shown(instant: object) -> str:
        return f"{instant:%Y-%m-%d %H:%M:%S}Z"

    assert (
        f"not running: its next run is at {shown(started + HOUR)}; no beat has been seen since "
        f"{shown(started - 60 * SECOND)} (the database has been up since {shown(started)} only)."
    ) == situation.explain()


def test_a_row_in_the_hands_of_a_beat_names_it(well: Situation) -> None:
    well.plan(ago(seconds=2), marked_by=BEAT, marked_at=ago(seconds=1), mark_lease="15 s")

    assert (
        "not running: its run has been due since 11:59:58Z; the beat web-1 (process 4711), last seen at 12:00:00Z, "
        "marked it at 11:59:59Z."
    ) == well.explain()


def test_a_row_marked_by_a_stopped_beat_names_it_and_when_its_mark_lapsed(situation: Situation) -> None:
    situation.beat(node="another")
    situation.beat(ago(minutes=2))
    situation.plan(ago(minutes=1), marked_by=BEAT, marked_at=ago(minutes=1), mark_lease="15 s")

    assert (
        "not running: its run has been due since 11:59:00Z; the beat web-1 (process 4711), last seen at 11:58:00Z, "
        "marked it at 11:59:00Z, and that mark lapsed at 11:59:15Z."
    ) == situation.explain()


def test_a_row_that_living_beats_leave_alone_says_what_may_be_the_reason(well: Situation) -> None:
    well.plan(ago(minutes=1))

    assert well.explain().endswith(
        "; a beat was seen at 12:00:00Z, but none takes it: they may be behind with their work, "
        "or another transaction locks the row."
    )


def test_a_row_that_only_some_beats_know_waits_for_those(well: Situation) -> None:
    well.plan(ago(minutes=1), lazy=True)

    assert well.explain().endswith("; only a beat whose code declares it may take it, and none does.")


def test_a_paused_row_says_by_whom_until_when_and_why(well: Situation) -> None:
    well.plan()
    well.session.rows("select pgbeat.pause('nightly', 'stocktaking', %s)", NOON + HOUR)
    who = well.session.value("select session_user")

    assert f"not running: it is paused by {who} until 13:00:00Z (stocktaking)." == well.explain()


def test_a_pause_that_is_over_waits_for_a_beat(situation: Situation) -> None:
    situation.task(enabled=False, paused_until=ago(minutes=1))

    assert (
        f"not running: its pause was over at 11:59:00Z, and a beat has to resume it; {NO_BEAT}."
    ) == situation.explain()


def test_a_row_with_a_problem_shows_it(well: Situation) -> None:
    well.task(problem="'0 25 * * *': hour 25 is not in 0-23.")

    assert "not running: it cannot be planned: '0 25 * * *': hour 25 is not in 0-23." == well.explain()


def test_a_new_row_is_to_be_planned(situation: Situation) -> None:
    situation.task()

    assert (
        f"not running: its next run has been waiting to be planned since 12:00:00Z; {NO_BEAT}."
    ) == situation.explain()


def test_a_row_held_back_by_a_blackout_says_by_which_and_until_when(well: Situation) -> None:
    well.plan(planned_for=ago(hours=1), blackout=["0 11 * * * PT2H"])

    assert (
        f"not running: {NEXT}, the one of 11:00:00Z is held back until then by its blackout windows (0 11 * * * PT2H)."
    ) == well.explain()


def test_a_run_skipped_in_a_blackout_is_named(well: Situation) -> None:
    well.plan(blackout=["0 10 * * * PT3H"], blackout_action="skip")
    well.final(
        "skipped", ago(hours=2), reason="blackout", occurrences=2, last_scheduled_for=ago(hours=1), finished_at=NOON
    )

    assert (
        f"not running: {NEXT}; its last 2 runs, from 10:00:00Z to 11:00:00Z, were skipped: blackout."
    ) == well.explain()


def test_a_run_spread_by_jitter_says_so(well: Situation) -> None:
    well.plan(NOON + 30 * SECOND, planned_for=NOON, jitter="1 minute")

    assert "not running: its next run is at 12:00:30Z, spread by its jitter from 12:00:00Z." == well.explain()


def test_where_jitter_or_a_blackout_may_have_moved_a_run_neither_is_claimed(well: Situation) -> None:
    well.plan(NOON + 30 * SECOND, planned_for=NOON, jitter="1 minute", blackout=["0 0 * * * PT1H"])

    assert (
        "not running: its next run is at 12:00:30Z, moved by its jitter or a blackout window from 12:00:00Z."
    ) == well.explain()


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"max_runs": 3, "run_count": 3}, "it has reached max_runs (3)"),
        ({"end_at": ago(days=1)}, "nothing is left before its end_at, 2100-02-28 12:00:00Z"),
        ({"schedule": "2026-01-01"}, "its schedule has no further occurrence"),
    ],
)
def test_a_finished_row_says_what_finished_it(well: Situation, columns: dict[str, object], why: str) -> None:
    well.task(**{"next_run_at": None, **columns})  # type: ignore[arg-type]

    assert f"not running: it is finished: {why}." == well.explain()


def test_a_row_without_a_schedule_waits_for_a_person(situation: Situation) -> None:
    situation.task(schedule=None)

    assert "not running: it has no schedule, only trigger() starts it." == situation.explain()


def test_a_running_job_says_since_when_and_on_which_worker(well: Situation) -> None:
    well.plan()
    well.job("running", attempt=2)

    assert (
        f"running: job 1 has been running since 11:50:00Z on web-2 (process 815) (attempt 3); {NEXT}."
    ) == well.explain()


def test_a_paused_row_may_be_running_all_the_same(well: Situation) -> None:
    well.task(enabled=False, paused_by="ann")
    well.job("running", max_run_time="30 minutes")

    assert (
        "running: job 1 has been running since 11:50:00Z on web-2 (process 815), with a max_run_time of 00:30:00; it "
        "is paused by ann."
    ) == well.explain()


def test_a_job_that_hangs_says_since_when_it_is_in_the_way_and_that_nothing_ends_it(well: Situation) -> None:
    well.plan()
    well.job("running", ago(hours=3))
    for hours in (2, 1):
        well.final("skipped", ago(hours=hours), reason="overlap", blocked_by=str(JOB))

    assert (
        "running: job 1 has been running since 09:00:00Z on web-2 (process 815), blocking its next runs since "
        f"10:00:00Z: it has no max_run_time, so no beat ends it; {NEXT}."
    ) == well.explain()


def test_a_job_is_not_in_the_way_before_it_has_started(well: Situation) -> None:
    well.plan(overlap="buffer_all", catchup="all")
    well.job("running", ago(hours=1))
    well.job("buffered", ago(hours=2), id="00000000-0000-0000-0000-000000000002", busy_until="infinity")

    assert ", blocking its next runs since 11:00:00Z: " in well.explain()


@pytest.mark.parametrize(("on_lost", "fate"), [("give_up", "gives it up"), ("rerun", "runs it again")])
def test_a_job_whose_worker_is_gone_says_what_becomes_of_it_and_when(
    situation: Situation, on_lost: str, fate: str
) -> None:
    situation.beat()
    situation.worker(ago(minutes=1))
    situation.plan()
    situation.job("running", on_lost=on_lost)

    assert (
        "running: job 1 has been running since 11:50:00Z on web-2 (process 815), last seen at 11:59:00Z: a beat "
        f"{fate} unless it reports by 12:00:25Z; {NEXT}."
    ) == situation.explain()


def test_a_row_blocked_by_a_lost_job_that_no_beat_gives_up_says_so(situation: Situation) -> None:
    situation.beat(ago(minutes=4))
    situation.plan()
    situation.job("running", busy_until=ago(minutes=3))

    assert (
        "running: job 1 has been running since 11:50:00Z on web-2 (process 815), of which no heartbeat is known, "
        f"silent past 11:57:00Z: a beat gives it up; {NEXT}; no beat has been seen since 11:56:00Z."
    ) == situation.explain()


def test_a_run_that_was_skipped_for_a_job_names_that_job_and_what_became_of_it(well: Situation) -> None:
    well.plan()
    well.final("lost", ago(hours=2), id=str(JOB), error="the worker died")
    well.final("skipped", reason="overlap", blocked_by=str(JOB))

    assert (
        f"not running: {NEXT}; its last run, of 11:00:00Z, was skipped: overlap, job 1 was in the way and has since "
        "been lost."
    ) == well.explain()


@pytest.mark.parametrize(
    ("state", "error", "told"),
    [
        ("succeeded", None, "succeeded at 11:00:00Z"),
        ("failed", "ValueError: 7", "failed at 11:00:00Z (ValueError: 7)"),
        ("lost", None, "was lost at 11:00:00Z"),
        (
            "lost",
            "unsendable: its message cannot be made: TypeError: no room",
            "could not be sent, and was given up at 11:00:00Z (its message cannot be made: TypeError: no room)",
        ),
        ("untracked", None, "was sent, and its end is not reported, at 11:00:00Z"),
    ],
)
def test_the_end_of_the_last_job_is_named(well: Situation, state: str, error: str | None, told: str) -> None:
    well.plan()
    well.final(state, error=error)

    assert f"not running: {NEXT}; its last job, of 11:00:00Z, {told}." == well.explain()


def test_a_job_in_the_queue_says_since_when(well: Situation) -> None:
    well.plan()
    well.job("sent", resends=1)

    assert (
        "not running: job 1 has waited with the broker for a worker since 11:50:00Z, sent again (1 of 3 times); "
        f"{NEXT}."
    ) == well.explain()


def test_a_job_with_a_countdown_says_when_it_is_to_start(well: Situation) -> None:
    well.plan()
    well.job("sent", NOON + 60 * SECOND)

    assert f"not running: job 1 is with the broker, to start at 12:01:00Z; {NEXT}." == well.explain()


def test_without_our_tracker_it_is_unknown_whether_a_job_runs(situation: Situation) -> None:
    situation.beat()
    situation.worker(tracking=False)
    situation.plan()
    situation.job("sent")

    assert (
        "not running: job 1 has waited with the broker for a worker since 11:50:00Z, and no worker with our tracker "
        f"is running, so it is not known whether it runs; {NEXT}."
    ) == situation.explain()


def test_a_job_that_only_the_result_backend_tracks_is_named_so(situation: Situation) -> None:
    situation.beat()
    situation.plan()
    situation.job("sent", tracking="result")

    assert ", and only the result backend knows how it ends; " in situation.explain()


def test_a_job_that_is_to_be_tried_again_says_when(well: Situation) -> None:
    well.plan()
    well.job("retrying", NOON + 60 * SECOND, attempt=1, error="ValueError: 7")

    assert (
        f"not running: job 1 is with the broker, to start at 12:01:00Z (attempt 2 after ValueError: 7); {NEXT}."
    ) == well.explain()


def test_a_job_that_no_beat_sends_names_the_last_beat(situation: Situation) -> None:
    situation.beat(ago(minutes=9))
    situation.plan()
    situation.job("pending", marked_by=BEAT, marked_at=ago(minutes=10), mark_lease="15 s")

    assert (
        "not running: job 1 has waited to be sent since 11:50:00Z: the beat web-1 (process 4711), last seen at "
        f"11:51:00Z, marked it at 11:50:00Z, and that mark lapsed at 11:50:15Z; {NEXT}; no beat has been seen since "
        "11:51:00Z."
    ) == situation.explain()


def test_a_job_that_the_broker_refuses_shows_the_error(well: Situation) -> None:
    well.plan()
    well.job("pending", refusals=2, error="refused by the broker: no exchange 'x'")

    assert ", and 2 of 3 attempts to send it have failed (refused by the broker: no exchange 'x'); " in well.explain()


def test_a_job_that_waits_is_explained_by_the_one_that_runs(well: Situation) -> None:
    well.plan(overlap="buffer_one")
    well.job("running", ago(hours=2), max_run_time="3 hours")
    well.job("buffered", ago(hours=1), id="00000000-0000-0000-0000-000000000002", busy_until="infinity")

    assert (
        "running: job 1 has been running since 10:00:00Z on web-2 (process 815), blocking its next runs since "
        f"11:00:00Z, with a max_run_time of 03:00:00; other jobs of it that are not final: 1; {NEXT}."
    ) == well.explain()


def test_an_unknown_name_is_refused_with_the_one_that_was_meant(situation: Situation) -> None:
    situation.task()

    error = situation.session.refusal("select pgbeat.explain('nigthly')")

    assert ("P0002", "No periodic task is named 'nigthly'. Did you mean 'nightly'?") == (error.pgcode, reason(error))


def test_it_may_be_asked_in_a_transaction_that_writes_nothing(situation: Situation, migrated_database: str) -> None:
    situation.task()
    session = Session(migrated_database)
    session.rows("begin read only")

    assert session.value("select pgbeat.explain('nightly')").startswith("'nightly' is not running: ")


def test_a_row_of_a_paused_group_says_so(well: Situation) -> None:
    well.plan(group_name="reports")
    well.session.rows("select pgbeat.pause_group('reports', 'stocktaking')")

    assert "not running: its group 'reports' is paused (stocktaking)." == well.explain()


def test_a_job_without_a_place_says_how_full_its_group_is_and_who_is_there_longest(well: Situation) -> None:
    well.session.rows("select pgbeat.limit_group('reports', 1)")
    well.plan(group_name="reports")
    well.job("running", id="00000000-0000-0000-0000-000000000002", periodic_task="yearly", group_name="reports", slot=1)
    well.job("buffered", group_name="reports", wait_reason="slot", exclusive=True, busy_until="infinity")

    assert (
        "not running: job 1 waits for a place in its group 'reports' (1 of 1 taken, the longest by job "
        f"00000000-0000-0000-0000-000000000002 of 'yearly'); {NEXT}."
    ) == well.explain()


def test_a_job_whose_group_has_no_limit_any_more_waits_for_a_beat(situation: Situation) -> None:
    situation.plan(group_name="reports")
    situation.job("buffered", group_name="reports", wait_reason="slot", exclusive=True, busy_until="infinity")

    assert (
        f"not running: job 1 waits for a place in its group 'reports', which has no limit any more; {NEXT}; {NO_BEAT}."
    ) == situation.explain()


def test_a_backfill_that_runs_says_how_far_it_has_come(well: Situation) -> None:
    well.plan()
    ask = "select pgbeat.backfill('nightly', '2026-05-01 00:00Z', '2026-05-01 11:00Z')"
    well.session.rows(ask)
    what = "a backfill of it, from 2026-05-01 00:00:00Z to 2026-05-01 11:00:00Z,"

    assert f"not running: {NEXT}; {what} has not begun." == well.explain()

    well.session.rows("update pgbeat.backfill set total = 12, submitted = 3, skipped = 2")
    assert f"not running: {NEXT}; {what} has decided 5 of 12 occurrences." == well.explain()

    well.session.rows(ask)
    assert f"not running: {NEXT}; 2 backfills of it are running." == well.explain()

    well.session.rows("select pgbeat.cancel_backfill(id) from pgbeat.backfill")
    assert f"not running: {NEXT}." == well.explain()
