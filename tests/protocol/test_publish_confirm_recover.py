"""What happens to a job between its submit and its message, whoever dies in between."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from celery_pgbeat.postgres.beat_queries import BeatQueries
from celery_pgbeat.postgres.worker_queries import Start, WorkerQueries
from tests.harness.clock import Clock
from tests.harness.outbox import taken_over
from tests.harness.ticks import HOUR, beat, insert, jobs, make_due, submit

ON_TIME = timedelta(seconds=32)


def submitted(store: BeatQueries, name: str = "a", **columns: object) -> None:
    make_due(store, name, **columns)
    submit(store, store.mark(10))


def lapse(store: BeatQueries) -> None:
    store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', marked_at = marked_at - interval '16 seconds'"
    )


def test_a_confirm_moves_a_pending_job_to_submitted(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store)
    (job,) = jobs(store)

    assert {job["id"]} == store.confirm([(job["id"], 0.0)]).jobs

    (job,) = jobs(store)
    assert job["state"] == "sent"
    assert job["sent_at"] is not None


@pytest.mark.parametrize("state", ["running", "retrying", "sent"])
def test_a_confirm_moves_nothing_but_pending_jobs(migrated_database: str, state: str) -> None:
    store = beat(migrated_database)
    submitted(store)
    (job,) = jobs(store)
    store.database.execute("update pgbeat.active_job set state = %(state)s", {"state": state})

    assert set() == store.confirm([(job["id"], 0.0)]).jobs
    assert state == jobs(store)[0]["state"]


def test_a_confirm_changes_nothing_that_another_beat_has_taken_over(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    submitted(first)
    lapse(first)
    (taken,) = second.recover(10, ON_TIME)

    assert set() == first.confirm([(taken.id, 0.0)]).jobs
    assert {taken.id} == second.confirm([(taken.id, 0.0)]).jobs


def test_a_job_that_is_not_tracked_is_final_when_it_is_confirmed(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store, tracking="send")
    (job,) = jobs(store)
    store.confirm([(job["id"], 0.0)])

    (job,) = jobs(store)
    assert (job["state"], job["finished_at"] is not None) == ("untracked", True)
    assert store.database.execute("select id from pgbeat.active_job") == []


def test_an_unsent_job_is_taken_over_under_its_own_id_when_the_lease_is_over(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    submitted(first)
    (job,) = jobs(first)

    assert not second.look().unsent
    assert second.recover(10, ON_TIME) == []
    lapse(first)
    assert second.look().unsent
    (taken,) = second.recover(10, ON_TIME)

    assert job["id"] == taken.id
    assert job["scheduled_for"] == taken.scheduled_for


def test_a_job_given_back_is_taken_at_once(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    submitted(first)

    assert first.give_back() == 1
    assert len(second.recover(10, ON_TIME)) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("delete from pgbeat.periodic_task", "deleted"),
        ("update pgbeat.periodic_task set enabled = false", "paused"),
    ],
)
def test_an_unsent_job_of_a_row_that_is_gone_or_paused_is_recorded_not_sent(
    migrated_database: str, change: str, reason: str
) -> None:
    store = beat(migrated_database)
    submitted(store)
    store.give_back()
    store.database.execute(change)

    (recovered,) = store.recover(10, ON_TIME)

    assert reason == recovered.reason
    (job,) = jobs(store)
    assert ("skipped", reason) == (job["state"], job["reason"])


@pytest.mark.parametrize(
    ("columns", "change", "sent"),
    [
        ({"catchup": "latest"}, "next_run_at = statement_timestamp()", False),
        ({"catchup": "latest"}, "next_run_at = statement_timestamp() + interval '1 hour'", True),
        (
            {"catchup": "latest", "blackout": "{0 0 1 1 * PT1H}", "blackout_action": "defer"},
            "next_run_at = statement_timestamp()",
            False,
        ),
        # The newer one may be passed over, and then nothing would run.
        (
            {"catchup": "latest", "blackout": "{0 0 1 1 * PT1H}", "blackout_action": "skip"},
            "next_run_at = statement_timestamp()",
            True,
        ),
        ({"catchup": "none"}, "next_run_at = statement_timestamp() + interval '1 hour'", False),
        ({"catchup_window": "1 minute"}, "next_run_at = statement_timestamp() + interval '1 hour'", False),
        ({"catchup_window": "1 hour"}, "next_run_at = statement_timestamp() + interval '1 hour'", True),
    ],
)
def test_an_unsent_job_that_is_no_longer_on_time_is_decided_by_catchup(
    migrated_database: str, columns: dict[str, str], change: str, sent: bool
) -> None:
    store = beat(migrated_database)
    submitted(store, **columns)
    store.database.execute(f"update pgbeat.periodic_task set {change}")
    store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', marked_at = null, due_at = due_at - interval '10 minutes'"
    )

    (recovered,) = store.recover(10, ON_TIME)

    assert (None if sent else "too_late") == recovered.reason


def test_an_unsent_job_that_is_on_time_is_too_late_for_a_shorter_catchup_window(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store, catchup_window="5 seconds")
    store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', marked_at = null, due_at = due_at - interval '6 seconds'"
    )

    (recovered,) = store.recover(10, ON_TIME)

    assert "too_late" == recovered.reason


def test_the_windows_of_a_row_come_with_its_unsent_job_but_not_with_a_manual_one(migrated_database: str) -> None:
    store = beat(migrated_database)
    store.database.execute("insert into pgbeat.blackout values ('night', array['0 0 * * * PT5H'], 'Europe/Berlin')")
    submitted(store, blackout="{window: night}", timezone="Asia/Tokyo", overlap="allow")
    store.give_back()
    store.database.execute("select pgbeat.trigger('a')")

    found = {job.origin: (job.blackout, job.timezone, job.windows) for job in store.recover(10, ON_TIME)}

    assert (["window: night"], "Asia/Tokyo", {"night": [["0 0 * * * PT5H"], "Europe/Berlin"]}) == found["schedule"]
    assert None is found["manual"][0]


def test_by_when_a_job_is_to_be_sent_comes_with_it_but_not_with_a_manual_one(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store, catchup_window="90 seconds", overlap="allow")
    store.give_back()
    store.database.execute("select pgbeat.trigger('a')")

    found = {row.origin: (row, taken_over(row).send_by) for row in store.recover(10, ON_TIME)}

    row, send_by = found["schedule"]
    assert row.scheduled_for + timedelta(seconds=90) == send_by
    assert None is found["manual"][1]


def test_a_job_that_is_held_back_is_taken_by_no_beat_before_its_instant_and_by_any_after(
    migrated_database: str,
) -> None:
    store, clock = beat(migrated_database), Clock(migrated_database)
    submitted(store)
    store.give_back()
    (taken,) = store.recover(10, ON_TIME)
    now = store.look().now

    assert 1 == store.postpone_jobs([(taken.id, now + HOUR)])

    assert (False, []) == (store.look().unsent, store.recover(10, ON_TIME))
    clock.stand_at(now + HOUR - timedelta(seconds=1))
    assert not store.look().unsent
    clock.stand_at(now + HOUR)
    assert store.look().unsent
    assert [taken.id] == [job.id for job in beat(migrated_database, "beat-b").recover(10, 2 * HOUR)]


def test_p10_a_job_whose_queue_is_closed_waits_and_is_sent_when_the_queue_opens(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store)
    (job,) = jobs(store)

    assert 1 == store.delay_jobs([(job["id"], 10.0, "OutOfMemoryError: no room")])
    (held,) = jobs(store)
    assert ("pending", "closed queue: OutOfMemoryError: no room") == (held["state"], held["error"])
    assert not store.look().unsent
    assert [] == store.recover(10, ON_TIME)

    assert 1 == store.end_delays()
    assert [job["id"]] == [taken.id for taken in store.recover(10, ON_TIME)]
    assert job["busy_until"] == jobs(store)[0]["busy_until"]


def test_p10_rows_of_a_closed_queue_stay_due_and_others_are_marked(migrated_database: str) -> None:
    store = beat(migrated_database)
    for name, columns in {
        "of-queue": {"queue": "full"},
        "of-task": {"task": "mail.send"},
        "other-queue": {"queue": "fine", "task": "mail.send"},
        "other-task": {},
    }.items():
        make_due(store, name, **columns)
    closed = {"closed_queues": ["full"], "closed_tasks": ["mail.send"]}

    assert store.look(**closed).due
    assert ["other-queue", "other-task"] == sorted(row.name for row in store.mark(10, **closed))
    assert not store.look(**closed).due
    assert ["of-queue", "of-task"] == sorted(row.name for row in store.mark(10))


def test_a_job_that_another_beat_has_taken_over_is_not_held_back(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    submitted(first)
    first.give_back()
    (taken,) = second.recover(10, ON_TIME)

    assert 0 == first.postpone_jobs([(taken.id, taken.scheduled_for + HOUR)])


def test_a_manual_job_of_a_paused_row_goes_out(migrated_database: str) -> None:
    store = beat(migrated_database)
    insert(store, "a", enabled=False)
    store.database.execute("select pgbeat.trigger('a')")

    (recovered,) = store.recover(10, ON_TIME)

    assert (recovered.reason, recovered.origin) == (None, "manual")


def test_a_silent_job_is_sent_again_three_times_and_then_lost(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store)
    (job,) = jobs(store)
    store.confirm([(job["id"], 0.0)])
    verdicts = []
    for _ in range(4):
        store.database.execute(
            "update pgbeat.active_job set check_at = 'epoch', busy_until = statement_timestamp() - interval '1 second'"
        )
        verdicts += [verdict.verdict for verdict in store.judge(10, resending=True)]
        for taken in store.recover(10, ON_TIME):
            assert job["id"] == taken.id
            store.confirm([(taken.id, 0.0)])

    assert verdicts == ["resend", "resend", "resend", "lost"]
    assert [job["state"] for job in jobs(store)] == ["lost"]


@pytest.mark.parametrize(
    "change",
    [
        "delete from pgbeat.periodic_task",
        "update pgbeat.periodic_task set enabled = false",
        "update pgbeat.periodic_task set catchup = 'none'",
        "update pgbeat.periodic_task set catchup_window = '1 second'",
    ],
)
def test_a_job_that_a_worker_had_begun_and_gave_back_is_sent_again_however_late_it_is(
    migrated_database: str, change: str
) -> None:
    store, clock = beat(migrated_database), Clock(migrated_database)
    submitted(store)
    (job,) = jobs(store)
    store.confirm([(job["id"], 0.0)])
    worker = WorkerQueries(store.database)
    start = Start(job["id"], 0, 0, uuid.uuid4(), "worker-a")
    assert worker.start(start, HOUR)
    clock.stand_at(store.look().now + HOUR)
    assert worker.requeue(start, "its worker was shut down", resend=True)
    store.database.execute(change)

    (recovered,) = store.recover(10, ON_TIME)

    assert (job["id"], None, None) == (recovered.id, recovered.reason, recovered.due_at)


def test_where_no_worker_announces_the_tracker_a_silent_job_is_lost_not_sent_again(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store)
    (job,) = jobs(store)
    store.confirm([(job["id"], 0.0)])
    store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', busy_until = statement_timestamp() - interval '1 second'"
    )

    assert [verdict.verdict for verdict in store.judge(10, resending=False)] == ["lost"]


@pytest.mark.parametrize("state", ["running", "retrying"])
@pytest.mark.parametrize(("on_lost", "verdict"), [("give_up", "lost"), ("rerun", "rerun")])
def test_on_lost_decides_what_becomes_of_a_job_whose_worker_died(
    migrated_database: str, state: str, on_lost: str, verdict: str
) -> None:
    store = beat(migrated_database)
    submitted(store, on_lost=on_lost)
    store.database.execute(
        "update pgbeat.active_job set check_at = 'epoch', "
        "state = %(state)s, busy_until = statement_timestamp() - interval '1 second'",
        {"state": state},
    )

    assert [verdict] == [answer.verdict for answer in store.judge(10, resending=True)]
    (job,) = jobs(store)
    assert ("lost" if on_lost == "give_up" else "pending") == job["state"]


def test_a_message_refused_three_times_by_a_reachable_broker_is_lost_as_unsendable(migrated_database: str) -> None:
    store = beat(migrated_database)
    submitted(store)
    (job,) = jobs(store)
    for _ in range(2):
        assert store.refuse([(job["id"], "NotFound: no exchange 'x'")]) == []
        lapse(store)
        store.recover(10, ON_TIME)
    assert [job["id"]] == store.refuse([(job["id"], "NotFound: no exchange 'x'")])

    (job,) = jobs(store)
    assert (job["state"], job["error"]) == ("lost", "unsendable: NotFound: no exchange 'x'")


def test_stopping_hands_back_marks_and_unsent_jobs_of_this_beat_alone(migrated_database: str) -> None:
    first, second = beat(migrated_database, "beat-a"), beat(migrated_database, "beat-b")
    submitted(first, "sent-by-a")
    make_due(second, "marked-by-b")
    second.mark(10)
    make_due(first, "marked-by-a")
    first.mark(10)

    assert (first.unmark(), first.give_back()) == (1, 1)
    assert [row.name for row in second.mark(10)] == ["marked-by-a"]


def test_what_dead_beats_left_is_freed_and_what_live_ones_hold_is_not(migrated_database: str) -> None:
    dead, live, starting = (beat(migrated_database, name) for name in ("beat-dead", "beat-live", "beat-new"))
    submitted(dead, "job-of-dead")
    make_due(dead, "row-of-dead")
    dead.mark(10)
    make_due(live, "row-of-live")
    live.mark(10)

    assert starting.clear_dead_beats(["beat-dead"]) == (1, 1)
    assert [row.name for row in starting.mark(10)] == ["row-of-dead"]
    assert [job.periodic_task for job in starting.recover(10, ON_TIME)] == ["job-of-dead"]


def test_what_is_given_back_late_and_was_marked_anew_stays_with_its_beat(migrated_database: str) -> None:
    store = beat(migrated_database)
    for name in ("left", "taken again"):
        submitted(store, name)
    lapse(store)
    store.database.execute("update pgbeat.active_job set marked_at = pgbeat.now() where periodic_task = 'taken again'")

    assert 1 == store.give_back([job["id"] for job in jobs(store)], late=True)

    held = store.database.execute("select periodic_task from pgbeat.active_job where marked_by is not null")
    assert ["taken again"] == [row[0] for row in held]
