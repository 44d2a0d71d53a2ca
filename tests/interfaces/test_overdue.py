"""The view overdue: what should have happened and has not, told by the tables alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.harness.situations import BEAT, JOB, NO_BEAT, NOON, Situation, ago

SECOND = timedelta(seconds=1)
LATE = timedelta(minutes=10)


def test_when_all_beats_are_dead_each_row_that_is_due_is_overdue(situation: Situation) -> None:
    situation.beat(ago(minutes=10))
    situation.beat(ago(minutes=9), "another")
    for name, due_at in (("a", ago(minutes=8)), ("b", ago(minutes=7)), ("later", NOON + SECOND)):
        situation.plan(due_at, name=name)

    def late(name: str, minutes: int) -> dict[str, object]:
        why = f"its run has been due since {ago(minutes=minutes):%Y-%m-%d %H:%M:%S}Z; no beat has been seen since "
        due = {"name": name, "due_at": ago(minutes=minutes), "late_by": timedelta(minutes=minutes), "code": "undecided"}
        return {**due, "reason": f"{why}2100-03-01 11:51:00Z"}

    assert [late("a", 8), late("b", 7)] == situation.session.rows("select * from pgbeat.overdue order by name")


def test_a_row_is_overdue_after_twice_the_lease_and_the_poll(well: Situation) -> None:
    well.plan(ago(seconds=32))

    assert [] == well.overdue()
    well.clock.advance(timedelta(microseconds=1))
    assert [ago(seconds=32)] == [due_at for due_at, _, _ in well.overdue()]


def test_the_lease_is_that_of_the_beat_that_marked_the_row_last(well: Situation) -> None:
    well.plan(ago(seconds=62), mark_lease="30 s")

    assert [] == well.overdue()
    well.clock.advance(SECOND)
    assert 1 == len(well.overdue())


def test_where_no_beat_was_ever_started_that_is_the_reason(situation: Situation) -> None:
    situation.plan(ago(minutes=10))

    assert [(ago(minutes=10), LATE, f"its run has been due since 11:50:00Z; {NO_BEAT}")] == situation.overdue()


def test_after_a_restart_of_the_database_the_reason_says_since_when_it_is_up(situation: Situation) -> None:
    started = situation.session.value("select date_trunc('second', pg_postmaster_start_time())")
    situation.clock.stand_at(started + 10 * SECOND)
    situation.beat(started - 60 * SECOND)
    situation.plan(started - 50 * SECOND)

    (found,) = situation.overdue()

    up = f"(the database has been up since {started:%Y-%m-%d %H:%M:%S}Z only)"
    assert (60 * SECOND, True) == (found[1], found[2].endswith(up))


def test_a_row_marked_by_a_stopped_beat_names_that_beat(situation: Situation) -> None:
    situation.beat(node="another")
    situation.beat(ago(minutes=10))
    situation.plan(ago(minutes=10), marked_by=BEAT, marked_at=ago(minutes=10), mark_lease="15 s")

    assert [
        (
            ago(minutes=10),
            LATE,
            "its run has been due since 11:50:00Z; the beat web-1 (process 4711), last seen at 11:50:00Z, marked it at "
            "11:50:00Z, and that mark lapsed at 11:50:15Z",
        )
    ] == situation.overdue()


def test_a_row_that_living_beats_leave_alone_is_overdue_too(well: Situation) -> None:
    well.plan(ago(minutes=10))

    ((_, _, reason),) = well.overdue()

    assert reason.startswith("its run has been due since 11:50:00Z; a beat was seen at 12:00:00Z, but none takes it: ")


def test_a_pause_that_no_beat_ends_is_overdue(situation: Situation) -> None:
    situation.task(enabled=False, paused_until=ago(minutes=10))

    assert [
        (ago(minutes=10), LATE, f"its pause was over at 11:50:00Z, and a beat has to resume it; {NO_BEAT}")
    ] == situation.overdue()


def test_a_row_that_no_beat_plans_is_overdue(situation: Situation) -> None:
    situation.task()
    assert [] == situation.overdue()

    situation.clock.advance(LATE)

    assert [
        (NOON, LATE, f"its next run has been waiting to be planned since 12:00:00Z; {NO_BEAT}")
    ] == situation.overdue()


def test_a_job_that_no_beat_sends_is_overdue(situation: Situation) -> None:
    situation.beat(ago(minutes=9))
    situation.plan()
    situation.job("pending")

    assert [
        (
            ago(minutes=10),
            LATE,
            "job 1 has waited to be sent since 11:50:00Z; no beat has been seen since 11:51:00Z",
        )
    ] == situation.overdue()


def test_p10_a_job_that_its_broker_refuses_is_overdue_since_its_occurrence_was_due(well: Situation) -> None:
    well.plan()
    well.job(
        "pending",
        ago(minutes=10),
        due_at=ago(minutes=11),
        error="closed queue: OutOfMemoryError: no room",
        check_at=NOON,
    )

    assert [
        (
            ago(minutes=11),
            timedelta(minutes=11),
            "job 1 has waited to be sent since 11:50:00Z: the broker takes no message for its queue "
            "(OutOfMemoryError: no room)",
        )
    ] == well.overdue()


def test_p10_a_row_that_stays_due_because_of_the_broker_says_what_its_beat_knows(well: Situation) -> None:
    well.session.rows("update pgbeat.node set broker_problem = 'it is away: no', broker_problem_since = pgbeat.now()")
    well.plan(ago(minutes=10))

    ((_, _, reason),) = well.overdue()
    assert reason.endswith("says of its broker since 12:00:00Z: it is away: no"), reason


def test_an_unsent_job_that_waited_by_design_is_late_from_its_turn_on(well: Situation) -> None:
    well.plan()
    well.job("pending", ago(minutes=10), due_at=ago(hours=3), waited=True)

    assert [ago(minutes=10)] == [due_at for due_at, _, _ in well.overdue()]


def test_a_job_that_no_worker_can_pick_up_is_overdue(situation: Situation) -> None:
    situation.beat()
    situation.worker(ago(minutes=12))
    situation.plan()
    situation.job("sent")

    assert [
        (
            ago(minutes=10),
            LATE,
            "job 1 has waited with the broker for a worker since 11:50:00Z, and no worker with our tracker has been "
            "seen since 11:48:00Z",
        )
    ] == situation.overdue()


def test_a_job_at_a_worker_without_our_tracker_is_overdue_until_its_end_is_reported(situation: Situation) -> None:
    situation.beat()
    situation.worker(tracking=False)
    situation.plan()
    situation.job("sent")

    ((_, _, reason),) = situation.overdue()

    assert reason.endswith("and no worker with our tracker is running, so it is not known whether it runs")


def test_a_job_in_a_long_queue_is_overdue_once_it_had_to_be_sent_again(well: Situation) -> None:
    well.plan()
    well.job("sent")
    assert [] == well.overdue()

    well.session.rows("update pgbeat.active_job set resends = 1")

    assert [ago(minutes=10)] == [due_at for due_at, _, _ in well.overdue()]


LOST = (
    "job 1 has waited with the broker for a worker since 11:50:00Z; the broker has lost its message: send it again "
    "(celery-pgbeat job resend ID) or end it (celery-pgbeat job cancel ID)"
)


def test_a_job_whose_message_the_broker_has_lost_is_overdue_since_it_was_due(well: Situation) -> None:
    well.plan()
    well.job("sent", due_at=ago(minutes=11))

    well.session.rows("insert into pgbeat.lost_message (job) values (%s)", str(JOB))

    assert [(ago(minutes=11), timedelta(minutes=11), LOST)] == well.overdue()
    assert LOST in well.explain()


@pytest.mark.parametrize(
    "goes_on",
    [
        "update pgbeat.active_job set state = 'running', started_at = pgbeat.now(), check_at = pgbeat.now() "
        "+ interval '25 s', busy_until = pgbeat.now() + interval '25 s'",
        "select pgbeat.resend_job(id) from pgbeat.active_job",
        "select pgbeat.cancel_job(id) from pgbeat.active_job",
        # It has been sent again.
        "update pgbeat.active_job set busy_until = pgbeat.now() + pickup_deadline",
    ],
    ids=["it starts", "it is to be sent again", "it is cancelled", "it was sent again"],
)
def test_the_note_of_a_lost_message_counts_until_the_job_goes_on(well: Situation, goes_on: str) -> None:
    well.plan()
    well.job("sent")
    well.session.rows("insert into pgbeat.lost_message (job) values (%s)", str(JOB))
    well.clock.advance(SECOND)

    well.session.rows(goes_on)

    assert [] == well.overdue()
    assert "the broker has lost" not in well.explain()


def test_a_lost_job_that_no_beat_gives_up_is_overdue(situation: Situation) -> None:
    situation.beat(ago(minutes=9))
    situation.plan()
    situation.job("running", busy_until=ago(minutes=8))

    assert [
        (
            ago(minutes=8),
            timedelta(minutes=8),
            "job 1 has been running since 11:50:00Z on web-2 (process 815), of which no heartbeat is known, "
            "silent past 11:52:00Z: a beat gives it up; no beat has been seen since 11:51:00Z",
        )
    ] == situation.overdue()


def test_a_job_of_a_dead_worker_is_not_overdue_before_its_silence_counts(situation: Situation) -> None:
    situation.beat()
    situation.worker(ago(minutes=5))
    situation.plan()
    situation.job("running")

    assert [] == situation.overdue()


def test_a_run_that_hangs_under_a_live_worker_is_overdue_since_the_first_run_that_it_kept_back(well: Situation) -> None:
    well.plan()
    well.job("running", ago(hours=3))
    for hours in (2, 1):
        well.final("skipped", ago(hours=hours), reason="overlap", blocked_by=str(JOB))

    assert [
        (
            ago(hours=2),
            timedelta(hours=2),
            "job 1 has been running since 09:00:00Z on web-2 (process 815), blocking its next runs since "
            "10:00:00Z: it has no max_run_time, so no beat ends it",
        )
    ] == well.overdue()


def test_a_run_that_keeps_a_buffered_one_waiting_is_overdue_too(well: Situation) -> None:
    well.plan(overlap="buffer_one")
    well.job("running", ago(hours=3))
    well.job("buffered", ago(hours=2), id="00000000-0000-0000-0000-000000000002", busy_until="infinity")

    assert [ago(hours=2)] == [due_at for due_at, _, _ in well.overdue()]


def test_p11_the_periodic_tasks_are_not_read_as_a_whole(situation: Situation) -> None:
    situation.session.rows(
        "insert into pgbeat.periodic_task (name, task, schedule, next_run_at) "
        "select 'row-' || n, 'app.probe', 'every 1h', pgbeat.now() + n * interval '1 minute' "
        "from generate_series(1, 5000) n"
    )
    situation.session.rows("vacuum analyze pgbeat.periodic_task")

    plan = "\n".join(row["QUERY PLAN"] for row in situation.session.rows("explain select * from pgbeat.overdue"))

    assert "Seq Scan on periodic_task" not in plan


def test_a_job_that_no_beat_lets_into_its_group_is_overdue(situation: Situation) -> None:
    situation.session.rows("select pgbeat.limit_group('reports', 1)")
    situation.plan(group_name="reports")
    situation.job("buffered", group_name="reports", wait_reason="slot", exclusive=True, busy_until="infinity")

    assert [
        (ago(minutes=10), LATE, f"job 1 waits for a place in its group 'reports' (0 of 1 taken); {NO_BEAT}")
    ] == situation.overdue()
